"""Huge numbers in gates, inputs and states: where they are put, and what stays finite."""
