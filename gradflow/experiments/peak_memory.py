"""How many bytes the tensors of a computation have at most, as torch's profiler counts them."""

from __future__ import annotations

import os
from collections.abc import Callable

from torch.profiler import ProfilerActivity, profile


def peak_bytes(run: Callable[[], object]) -> int:
    """Return the most memory on the CPU that was taken at one time while `run` ran.

    What an operation takes and gives back within itself is not seen, and neither is what was
    there before.
    """
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler speaks on standard error
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        run()
    changes = sorted(
        (event.time_range.end, event.self_cpu_memory_usage)
        for event in watched.events() or ()
        if event.self_cpu_memory_usage
    )
    held = most = 0
    for _, change in changes:
        held += change
        most = max(most, held)
    return most
