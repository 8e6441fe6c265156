"""Tests of the engine: cells in, numbers out."""
