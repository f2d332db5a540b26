"""Tests of lakehouse/engines."""
