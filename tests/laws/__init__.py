"""Tests of laws."""
