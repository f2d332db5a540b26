"""Tests of daybreak/serving."""
