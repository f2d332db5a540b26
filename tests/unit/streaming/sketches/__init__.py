"""Tests of streaming/sketches."""
