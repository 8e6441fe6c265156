"""What a network costs: multiply-adds, seconds, bytes."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch

from gradflow.experiments.benchmark.costs import (
    counted_multiply_adds,
    multiply_adds,
    process_peak_bytes,
    start_process_peak,
    time_of_sequences,
    training_peak_bytes,
)
from gradflow.experiments.benchmark.datasets import draw_sets
from gradflow.experiments.benchmark.networks import make_network
from gradflow.experiments.benchmark.signal_task import SignalTask
from gradflow.experiments.benchmark.training import TrainingRule
from tests.experiments.benchmark.small import copy_task

OWN = f"{Path(__file__).parent / 'cells.py'}:Leaky"
RULE = TrainingRule("adam", 0.01, 1.0, 10, 5, 100)
TASK = SignalTask(delay=10, distractors=3)


@pytest.mark.parametrize("task", [copy_task(), SignalTask(delay=6, distractors=4)])
@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("embedding", [0, 3])
def test_the_formula_is_what_torch_counts(cell: str, task: SignalTask, embedding: int):
    """One for each weight at each step, and the head's where it answers."""
    network = make_network(task, cell=cell, hidden=5, embedding=embedding)
    assert multiply_adds(cell, network, task) == counted_multiply_adds(network, task)


def test_a_user_cell_is_counted_as_it_runs():
    """tanh(W x + U h) has those of a plain RNN."""
    counts = [
        multiply_adds(cell, make_network(TASK, cell=cell, hidden=5, embedding=3), TASK)
        for cell in (OWN, "rnn")
    ]
    assert counts[0] == counts[1] == 10 * 5 * (3 + 5) + 5 * 2


def test_twice_the_batch_keeps_twice_the_activations():
    """Bytes beyond the weights' own grow with the batch and with the steps."""
    train = draw_sets(TASK, (256, 8, 8), seed=0).train
    long = SignalTask(delay=20, distractors=3)
    long_train = draw_sets(long, (256, 8, 8), seed=0).train

    def peak(task: SignalTask, size: int) -> int:
        make = partial(make_network, task, cell="lstm", hidden=16, embedding=8)
        data = train if task is TASK else long_train
        return training_peak_bytes(make, task, data, size, RULE)

    small, large, longer = peak(TASK, 32), peak(TASK, 64), peak(long, 32)
    weights = 4 * make_network(TASK, cell="lstm", hidden=16, embedding=8).parameter_count
    assert small > 4 * weights  # weights, gradients and Adam's two moments
    kept = 32 * 10 * 16 * 4 * 6  # six numbers a unit and step at least, in float32
    assert large - small > kept
    assert longer - small > kept


def test_512_sequences_take_time_whatever_the_batch():
    """Seconds are scaled to 512 where batches do not divide them."""
    train = draw_sets(TASK, (256, 8, 8), seed=0).train
    make = partial(make_network, TASK, cell="rnn", hidden=4, embedding=4)
    assert 0.0 < time_of_sequences(make, TASK, train, 200, RULE) < 30.0


def test_the_process_peak_sees_what_was_held():
    """100 MB of ones, gone by the time it is asked."""
    start_process_peak()
    before = process_peak_bytes()
    float(torch.ones(25_000_000).sum())
    assert process_peak_bytes() - before > 50e6
