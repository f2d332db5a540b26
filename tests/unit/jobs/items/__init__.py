"""Tests of jobs/items."""
