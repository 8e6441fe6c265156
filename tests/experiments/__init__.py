"""Tests of the experiments: one question per file."""
