"""What a watch costs a training: `pytest tests/benchmarks/bench_watch.py`.

The name keeps it out of the tests. Claimed are ratios of times from one run: a sampled update of
LSTM 2x256 (T = 128, batch 32) costs at most 6 plain ones, and every=100 less than 6 % of a
training. Plain and sampled updates take turns, and times are of the processor, so that what else
the machine does matters little.
"""

from __future__ import annotations

import statistics
import time
import tracemalloc
from typing import Any

import pytest
import torch
from torch import nn

from gradflow.watching.watch import watch

Benchmark = Any  # pytest-benchmark's fixture
LAYERS = {
    "lstm": lambda: nn.LSTM(256, 256, 2),
    "lstm, dropout": lambda: nn.LSTM(256, 256, 2, dropout=0.2),
    "lstm, both ways": lambda: nn.LSTM(256, 256, 2, bidirectional=True),
    "gru": lambda: nn.GRU(256, 256, 2),
    "rnn": lambda: nn.RNN(256, 256, 2),
}


class Training:
    """A training of one layer on random data, update by update."""

    def __init__(self, layer: nn.RNNBase, *, reads_all: bool = False) -> None:
        torch.manual_seed(0)
        self.layer, self.reads_all = layer, reads_all
        self.optimizer = torch.optim.SGD(layer.parameters(), lr=1e-3)
        self.x = torch.randn(128, 32, 256)

    def update(self) -> float:
        """Do one update; return the processor's seconds that it took."""
        before = time.process_time()
        self.optimizer.zero_grad()
        output = self.layer(self.x)[0]
        (output if self.reads_all else output[-1]).square().mean().backward()
        self.optimizer.step()
        return time.process_time() - before


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("reads_all", [False, True], ids=["last", "all"])
def test_a_sampled_update(benchmark: Benchmark, kind: str, reads_all: bool) -> None:
    """At most 6 plain updates, the update itself included."""
    training = Training(LAYERS[kind](), reads_all=reads_all)
    training.update()
    plain, sampled = [], []
    with watch(training.layer, every=2) as flow:  # every other update is sampled

        def pair() -> None:
            sampled.append(training.update())
            plain.append(training.update())

        benchmark.pedantic(pair, rounds=5, warmup_rounds=1)
    ratio = statistics.median(sampled[1:]) / statistics.median(plain[1:])
    benchmark.extra_info["plain updates"] = round(ratio, 2)
    assert len(flow.samples) == 6
    assert ratio <= 6.0, f"a sampled update costs {ratio:.2f} plain ones"


def test_every_hundredth_update(benchmark: Benchmark) -> None:
    """What the sampled one of 100 updates takes more than the others is less than 6 % of all."""
    training = Training(nn.LSTM(256, 256, 2))
    training.update()
    times: list[float] = []
    with watch(training.layer, every=100) as flow:
        benchmark.pedantic(lambda: times.append(training.update()), rounds=100)
    plain = statistics.median(times[1:])
    share = (times[0] - plain) / (100 * plain)
    benchmark.extra_info["share of the time"] = round(share, 4)
    assert len(flow.samples) == 1
    assert share < 0.06


def test_a_small_layer_between_samples(benchmark: Benchmark) -> None:
    """Hooks that do nothing: a cell that is called 200 times in an update."""
    cell, x = nn.LSTMCell(8, 8), torch.randn(200, 1, 8)

    def loop() -> float:
        before = time.process_time()
        state = None
        for row in x:
            state = cell(row, state)
        return time.process_time() - before

    loop()
    plain = statistics.median(loop() for _ in range(20))
    optimizer = torch.optim.SGD(cell.parameters(), lr=0.0)
    with watch(cell, every=10**9):
        cell(x[0])[0].sum().backward()
        optimizer.step()  # the sample of the first update is over
        times = []
        benchmark.pedantic(lambda: times.append(loop()), rounds=20)
    added = (statistics.median(times) - plain) / len(x)
    benchmark.extra_info["microseconds a step"] = round(1e6 * added, 2)
    assert statistics.median(times) < 1.2 * plain


def test_memory_returns_to_what_it_was(benchmark: Benchmark) -> None:
    """Python's own memory after ten sampled updates is within 100 KB of that after one."""
    training = Training(nn.LSTM(64, 64))
    training.x = torch.randn(32, 8, 64)
    tracemalloc.start()
    with watch(training.layer, every=1) as flow:
        training.update()
        before = tracemalloc.get_traced_memory()[0]
        benchmark.pedantic(training.update, rounds=10)
        after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(flow.samples) == 11
    assert after - before < 100_000
