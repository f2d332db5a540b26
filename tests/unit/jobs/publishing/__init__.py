"""Tests of jobs/publishing."""
