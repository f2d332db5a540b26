"""Tests of daybreak."""
