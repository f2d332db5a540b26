"""Tests of jobs/run."""
