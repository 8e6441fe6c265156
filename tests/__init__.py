"""The tests mirror gradflow/; each docstring is a fact about the world."""
