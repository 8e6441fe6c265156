"""Gradient by lag along a run, and how the gates stood there."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from gradflow.cells import LSTM, hold_
from gradflow.cells.torch_layers import cells_of_layer
from gradflow.engine.gate_statistics import cell_statistics
from gradflow.engine.jacobian_norms import jacobian_norms
from gradflow.engine.lag_norms import LagNorms, lag_norms
from gradflow.engine.lag_windows import choose_windows
from gradflow.engine.memory import memory_of
from gradflow.engine.unrolled import CellTrace, UnrolledLayer


def measured(trace: CellTrace, cell: object, **options: int) -> LagNorms:
    """The norms by lag of one cell's trace."""
    lengths = trace.own.sum(dim=0)
    windows = choose_windows(cell, lengths, **options)
    return lag_norms(
        cell, trace.inputs, trace.before, windows, lengths=lengths, reverse=trace.reverse
    )


def layer_of(seed: int, **options: object) -> UnrolledLayer:
    """A random LSTM in float64, unrolled."""
    torch.manual_seed(seed)
    layer = nn.LSTM(3, 4, **options).double()
    return UnrolledLayer(cells_of_layer(layer), directions=2 if layer.bidirectional else 1)


@pytest.mark.parametrize("place", [0, 1])
def test_each_window_has_the_norm_that_autograd_has(place: int):
    """d(h, c)_t / d(h, c)_{t-k} of a padded batch, in either direction, from steps of its own."""
    twin = layer_of(1, bidirectional=True)
    twin.run(torch.randn(9, 2, 3).double(), torch.tensor([9, 5]))
    trace, cell = twin.calls[0][place], twin.cells[place]
    found = measured(trace, cell)
    for column, (sample, begin) in enumerate(found.windows.starts):
        own = [9, 5][sample]
        order = list(range(own))[:: -1 if trace.reverse else 1][begin:]
        first = torch.cat([part[order[0], sample] for part in trace.before])

        def run(s: torch.Tensor, order: list[int] = order, sample: int = sample) -> torch.Tensor:
            state = (s[None, :4], s[None, 4:])
            for t in order[:3]:
                state = cell.advance(cell.drive(trace.inputs[t, sample][None]), state)
            return torch.cat(state, dim=1)[0]

        if len(order) >= 3:
            jacobian = torch.autograd.functional.jacobian(run, first)
            right = math.log10(torch.linalg.matrix_norm(jacobian, 2).item())
            assert found.log10_norm[3, column].item() == pytest.approx(right, abs=1e-10)
        assert torch.isnan(found.log10_norm[len(order) + 1 :, column]).all()


def test_a_held_forget_gate_gives_its_own_half_life_and_horizon():
    """f = 0.8808 loses half in 5.46 steps, and all but a thousandth in 54.4."""
    cell = hold_(LSTM(2, 3).double(), forget=0.8807970779778823)
    twin = UnrolledLayer([cell], directions=1)
    twin.run(torch.zeros(100, 1, 2).double())
    found = measured(twin.calls[0][0], cell)
    assert found.kept is not None
    assert found.direct is not None
    for curve in (found.kept, found.direct):
        memory = memory_of(found.lags.double().numpy(), curve[:, 0].numpy())
        assert memory.half_life == pytest.approx(5.46094731071831, rel=1e-9)
        assert memory.horizon == pytest.approx(-3.0 / math.log10(0.8807970779778823), rel=1e-9)


def test_a_horizon_that_is_not_reached_is_none():
    """It is longer than the data: nobody knows how long."""
    lags = np.arange(20.0)
    assert memory_of(lags, -0.1 * lags).horizon is None
    assert memory_of(lags, 0.1 * lags).half_life is None
    assert memory_of(lags, -1e-17 * lags).half_life is None  # rounding is no fall
    assert memory_of(lags, -1e-6 * lags).half_life == pytest.approx(math.log10(2.0) / 1e-6)


def test_a_curve_that_comes_up_again_is_not_forgotten():
    """The horizon is where it comes down for good."""
    curve = np.array([0.0, -4.0, -1.0, -2.0, -4.0])
    assert memory_of(np.arange(5.0), curve).horizon == pytest.approx(3.5)


def test_a_dear_cell_is_measured_on_fewer_windows_and_of_some_for_fewer_steps():
    """The subsample is told: it is never silent; several windows tell how good one of them is."""
    cell = LSTM(4, 64).double()
    step = 128 * 4 * 64**2
    full = choose_windows(cell, torch.full((8,), 200))
    assert len(full.starts) == 12
    assert sorted(set(full.steps)) == [67, 134, 200]
    assert not full.is_cut
    some = choose_windows(cell, torch.full((8,), 200), budget=step * 650.0)
    assert some.steps == (200, 200, 200)
    few = choose_windows(cell, torch.full((8,), 200), budget=step * 300.0)
    assert few.steps == (180, 60, 60)
    assert few.is_sample
    assert few.is_cut
    assert few.lags[-1] == 180
    assert choose_windows(cell, torch.full((8,), 200), budget=1.0).steps == (24, 12, 12)


def test_windows_of_some_lengths_are_the_windows_of_one_run():
    """Of a wide cell each length runs by itself; the numbers are those of the narrow way."""
    torch.manual_seed(0)
    cell = cells_of_layer(nn.LSTM(3, 64).double())[0]
    twin = UnrolledLayer([cell], directions=1)
    twin.run(torch.randn(12, 3, 3).double(), torch.tensor([12, 12, 7]))
    trace = twin.calls[0][0]
    found = measured(trace, cell)
    assert len(set(found.windows.steps)) > 3
    for column, (sample, begin) in enumerate(found.windows.starts):
        start = tuple(part[begin, sample][None] for part in trace.before)
        last = found.windows.steps[column]
        alone = jacobian_norms(cell, trace.inputs[begin : begin + last, sample, None], start)
        points = [lag for lag in found.windows.lags if lag <= last]
        right = alone.log_norm[[lag - 1 for lag in points], 0] / math.log(10.0)
        assert found.kept is not None
        assert found.kept[1 : len(points) + 1, column].tolist() == pytest.approx(right.tolist())
        assert torch.isnan(found.kept[len(points) + 1 :, column]).all()


def test_the_gates_of_a_run_are_told_with_their_effective_biases():
    """torch adds two bias vectors: 1 in both is 2, and the gate 0.8808 and not 0.7311."""
    layer = nn.LSTM(6, 8).double()
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
        layer.bias_ih_l0[8:16] = 1.0
        layer.bias_hh_l0[8:16] = 1.0
    (cell,) = cells_of_layer(layer)
    twin = UnrolledLayer([cell], directions=1)
    twin.run(torch.randn(10, 2, 6).double())
    trace = twin.calls[0][0]
    found = cell_statistics(cell, trace.inputs, trace.before, trace.own)
    forget = next(gate for gate in found.gates if gate.name == "forget")
    assert forget.effective_bias_mean == 2.0
    assert forget.value_mean == pytest.approx(0.8807970779778823)
    assert forget.saturated_fraction == 0.0
    assert forget.time_constants is not None
    assert forget.time_constants.tolist() == pytest.approx([7.8784816037292265] * 8)
    assert found.dead == tuple(range(8))
    assert sum(forget.values) == 10 * 2 * 8


def test_units_that_never_forget_are_counted():
    """A keep gate at 0.9999 throughout."""
    cell = hold_(LSTM(2, 3).double(), forget=0.9999)
    x = torch.randn(5, 1, 2).double()
    state = torch.zeros(5, 1, 3).double()
    found = cell_statistics(cell, x, (state, state), torch.ones(5, 1, dtype=torch.bool))
    assert found.never_forgetting == (0, 1, 2)
