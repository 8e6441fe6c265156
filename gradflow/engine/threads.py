"""How many threads torch computes with.

Small matrices do best on one: waking a second one costs more than it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

# Multiplications of one step from which on torch's threads pay for themselves.
ENOUGH = 2_000_000


@contextmanager
def with_threads(count: int) -> Iterator[None]:
    """Compute with so many threads inside the block, and then with as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def threads_for(multiplications: int) -> Iterator[None]:
    """Compute on one thread inside the block where a step has few multiplications.

    On a busy machine the difference is tenfold: torch's threads wait for each other by spinning.
    The number of threads before is restored.
    """
    with with_threads(1 if multiplications < ENOUGH else torch.get_num_threads()):
        yield
