"""Files of weights, read without running anything in them."""

from gradflow.checkpoints.files.read_file import read_file

__all__ = ["read_file"]
