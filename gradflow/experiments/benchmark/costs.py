"""What a network costs: multiply-adds, the time of a fixed number of sequences, and memory."""

from __future__ import annotations

import importlib
import itertools
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode

from gradflow.experiments.benchmark.datasets import batches
from gradflow.experiments.benchmark.networks import FUSED, Network, StepLayer
from gradflow.experiments.benchmark.tasks import Sequences, SequenceTask
from gradflow.experiments.benchmark.training import TrainingRule, make_optimizer, update
from gradflow.experiments.parameter_counts import step_cost
from gradflow.experiments.peak_memory import peak_bytes
from gradflow.records.params import Architecture

try:
    import resource
except ImportError:  # Windows, where psutil knows the peak
    resource = None  # type: ignore[assignment]

TIMED_SEQUENCES = 512
_REPEATS = 3
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")

Make = Callable[[], Network]


def multiply_adds(cell: str, network: Network, task: SequenceTask) -> int:
    """Return the multiply-adds of all matrix products, for one sequence forward.

    For torch's cells by formula; for a user's cell torch counts those of its own run. Looking an
    embedding up multiplies nothing; one-hot tokens are counted as the dense products they are.
    """
    if cell not in FUSED:
        return counted_multiply_adds(network, task)
    assert isinstance(network.layer, torch.nn.RNNBase)
    architecture = Architecture(
        cell,
        network.layer.input_size,
        network.layer.hidden_size,
        output_size=task.outputs,
    )
    cost = step_cost(architecture)
    return task.steps * cost.multiply_adds + task.reads * cost.head_multiply_adds


def counted_multiply_adds(network: Network, task: SequenceTask) -> int:
    """Return the multiply-adds of one sequence as torch counts those of the unrolled run."""
    inputs = task.sequences(task.draw(1, torch.Generator().manual_seed(0))).inputs
    (cell,) = network.cells()
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        network.answer(StepLayer(cell)(network.encode(inputs))[0])
    return int(counter.get_total_flops()) // 2


def time_of_sequences(
    make: Make, task: SequenceTask, train: Sequences, size: int, rule: TrainingRule
) -> float:
    """Return the seconds in which a new network is trained on 512 sequences: the median of three.

    Forward, backward and update, in batches of `size`. The network is thrown away.
    """
    network = make()
    optimizer = make_optimizer(network, rule)
    endless = batches(train, size, seed=0)
    update(network, task, next(endless), optimizer, rule.clip)  # the first one warms up
    seconds = []
    for _ in range(_REPEATS):
        given = list(itertools.islice(endless, -(-TIMED_SEQUENCES // size)))
        started = time.perf_counter()
        for batch in given:
            update(network, task, batch, optimizer, rule.clip)
        scale = TIMED_SEQUENCES / (len(given) * size)
        seconds.append(scale * (time.perf_counter() - started))
    return statistics.median(seconds)


def training_peak_bytes(
    make: Make, task: SequenceTask, train: Sequences, size: int, rule: TrainingRule
) -> int:
    """Return the most bytes of tensors that two updates of a new network hold at one time.

    Weights, gradients, the optimizer's state and what backpropagation keeps. From the second
    update on the optimizer has its state. Counted by torch's profiler in this process.
    """

    def run() -> None:
        network = make()
        optimizer = make_optimizer(network, rule)
        for batch in itertools.islice(batches(train, size, seed=0), 2):
            update(network, task, batch, optimizer, rule.clip)

    return peak_bytes(run)


def start_process_peak() -> None:
    """Forget the most memory that this process ever had, where the system can (Linux)."""
    try:
        _RESET.write_text("5")
    except OSError:
        return


def process_peak_bytes() -> int:
    """Return the most memory that this process had, since `start_process_peak` where that works.

    The interpreter and torch's own libraries are in it.
    """
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    if sys.platform == "win32":  # psutil comes with distributed
        return int(importlib.import_module("psutil").Process().memory_info().peak_wset)
    resource = importlib.import_module("resource")  # which Windows lacks
    unit = 1 if sys.platform == "darwin" else 1024
    return int(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
