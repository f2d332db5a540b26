"""Tests of daybreak/cli/setup."""
