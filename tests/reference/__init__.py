"""Slow, obvious twins that gradflow is checked against; none of them imports gradflow."""
