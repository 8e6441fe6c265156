"""How many bytes a computation takes at most, and how many the machine has."""

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


def physical_memory() -> float:
    """Return the bytes of memory that the machine has, infinity where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return float("inf")
