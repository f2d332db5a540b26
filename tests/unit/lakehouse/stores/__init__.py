"""Tests of lakehouse/stores."""
