"""Tests of lakehouse/reading."""
