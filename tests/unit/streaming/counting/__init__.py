"""Tests of streaming/counting."""
