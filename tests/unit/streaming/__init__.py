"""Tests of streaming."""
