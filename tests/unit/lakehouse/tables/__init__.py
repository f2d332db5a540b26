"""Tests of lakehouse/tables."""
