"""Tests of the cells: the things we look at."""
