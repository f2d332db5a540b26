"""Tests of daybreak/cli."""
