"""Tests of daybreak/intake."""
