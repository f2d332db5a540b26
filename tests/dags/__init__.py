"""Tests of dags."""
