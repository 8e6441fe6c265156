"""Measure how much of a recurrent network's state at step 0 is still felt at step T."""

__version__ = "0.1.0"
