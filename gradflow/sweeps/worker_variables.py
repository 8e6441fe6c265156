"""What the C library, the linear algebra and the profiler of a worker read when it starts.

Workers compute with one thread each: tasks are many and small, and two threads of a product wait
for each other. dask would have every worker give memory back to the system as soon as 64 KiB of it
are free (MALLOC_TRIM_THRESHOLD_), and a training step, which frees and takes that much all the
time, then spends half its time there; with these a worker keeps what it will need again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

WORKER_VARIABLES = {
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_TRIM_THRESHOLD_": "1073741824",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "KINETO_LOG_LEVEL": "99",  # torch's profiler, which counts memory, speaks on standard error
}


@contextmanager
def kept_environment() -> Iterator[None]:
    """Take back afterwards what dask sets in this process for the workers that it starts."""
    before = {name: os.environ.get(name) for name in WORKER_VARIABLES}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
