"""Tests of `gradflow.watch` as a whole, and of its callbacks."""
