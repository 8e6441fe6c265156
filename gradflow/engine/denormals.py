"""Flushing subnormal numbers to zero while measuring, and putting the setting back after.

Numbers below 2.2e-308 (float64) or 1.2e-38 (float32) are computed many times slower. Products are
rescaled and never come near them, but the states of a zero-input run fade through them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


def flushes_denormals() -> bool:
    """Return whether this thread flushes subnormal numbers now (torch can set it, not tell it)."""
    subnormal = torch.tensor([2.0**-1073], dtype=torch.float64, device="cpu")
    return float((subnormal * 2.0).item()) == 0.0


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Flush subnormal numbers to zero inside the block, then restore what was set before.

    Where the CPU cannot, nothing changes: results are the same, a few steps are slower.
    """
    before = flushes_denormals()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
