"""Tests of daybreak/rules."""
