"""Tests of gradflow.inits."""
