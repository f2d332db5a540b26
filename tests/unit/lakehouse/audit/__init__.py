"""Tests of lakehouse/audit."""
