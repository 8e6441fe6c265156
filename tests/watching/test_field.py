"""Field cases, held gates and broken numbers as a running watch shows them."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from gradflow.records.watch import BrokenTensor, FlowSample
from gradflow.watching.findings import sample_findings
from gradflow.watching.watch import watch
from tests.cases import normal
from tests.data.inspected_models import Classifier, Padded, held_lstm
from tests.field_cases import field_case
from tests.reference.per_step import PerStep
from tests.watching.measuring import (
    Reader,
    assert_same_curve,
    assert_same_profiles,
    last_output,
    layer_at,
    layer_of,
    one_sample,
)


def codes(sample: FlowSample) -> list[str]:
    """Return the codes of what a sample shows."""
    return [finding.code for finding in sample_findings(sample)]


@pytest.mark.parametrize(("forget", "steps", "expected"), [(0.1, 60, ["GF101"]), (0.9, 20, [])])
def test_a_forget_gate_is_judged_within_the_first_sample(
    forget: float, steps: int, expected: list[str]
):
    """0.1 a step loses a label 60 steps back; 0.9 keeps one 20 steps back. Trained in float32."""
    layer = held_lstm(forget)
    model = Reader(layer, last_output)
    sample = one_sample(model, torch.randn(steps, 8, 4))
    assert codes(sample) == expected
    (record,) = sample.layers
    assert record.gate_means["forget"] == pytest.approx(forget, abs=0.05)
    assert record.effective_forget_bias == pytest.approx(math.log(forget / (1 - forget)), abs=1e-6)
    if forget == 0.1:
        assert 3.0 <= record.horizon <= 6.0
        assert record.log10_dL_dh[-1] is not None  # about 1e-60, where float32 has 0


def test_the_gradient_of_an_output_is_not_that_of_the_state():
    """output.grad is zero at all but the last step; dL/dh_t is not, and falls by the recurrence.

    Reported as C01: `out.retain_grad()` reads zeros, and people take it for vanishing.
    """
    for kind in ("LSTM", "GRU", "RNN"):
        model = Classifier(kind).double()
        x = normal(4, 12, 3, seed=12)
        twin = PerStep(model.rnn)
        loss = model.head(twin(x)[0][:, -1]).sum()
        seen: list[Tensor] = []

        def kept(rnn: Any, given: Tensor, model: Any = model, seen: Any = seen) -> Tensor:
            output, _ = rnn(given)
            output.retain_grad()
            seen.append(output)
            return model.head(output[:, -1]).sum()

        sample = one_sample(Reader(model.rnn, kept), x)
        assert_same_profiles(sample, loss, twin)
        zero = seen[0].grad[:, :-1]
        assert not zero.any()


def test_the_reversed_half_of_the_last_output_reads_one_step():
    """Its gradient stands at the one step that it has read; h_n's reaches all (case C14)."""
    case = field_case("bidirectional_last_output")
    x = torch.tensor(case.arrays["x"])
    layer = nn.LSTM(x.shape[-1], 4, bidirectional=True, dtype=torch.float64)

    def half(rnn: Any, given: Tensor) -> Tensor:
        return rnn(given)[0][-1, :, 4:].sum()

    def state(rnn: Any, given: Tensor) -> Tensor:
        return rnn(given)[1][0][1].sum()

    sample = one_sample(Reader(layer, half), x)
    steps = len(x)
    reverse = layer_at(sample, direction="reverse")
    assert [value is None for value in reverse.log10_dL_dh] == [True] * (steps - 1) + [False]
    assert reverse.arrives == (steps - 1, steps - 1)
    assert set(codes(sample)) == {"GF105", "GF108"}  # nothing reads the forward half
    sample = one_sample(Reader(layer, state), x)
    reverse = layer_at(sample, direction="reverse")
    assert None not in reverse.log10_dL_dh
    assert reverse.arrives == (0, 0)


def test_packed_samples_are_aligned_at_their_own_ends():
    """Of 12, 5 and 2 steps three rows have distance 0, two distance 2 and one distance 11 (C16)."""
    model = Padded(packed=True).double()
    x, lengths = normal(3, 12, 3, seed=4), torch.tensor([12, 5, 2])
    twin = PerStep(model.rnn)
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    loss = twin(packed)[1][0][-1].sum()

    def read(rnn: Any, given: Any) -> Tensor:
        return rnn(given)[1][0][-1].sum()

    sample = one_sample(Reader(model.rnn, read), packed)
    assert_same_profiles(sample, loss, twin)
    (layer,) = sample.layers
    assert (layer.steps, layer.arrives) == (12, (0, 0))
    assert any("own last step" in note for note in layer.notes)


def test_a_gradient_below_float64_is_still_a_number():
    """A forget gate of 1e-3 over 120 steps leaves 1e-360, which is no zero and no cut."""
    layer = held_lstm(1e-3).double()
    with torch.no_grad():
        layer.weight_hh_l0.zero_()
        layer.weight_ih_l0[16:32].zero_()
        layer.bias_ih_l0[16:32] = math.log(1e-3 / 0.999)
    sample = one_sample(Reader(layer, last_output), normal(120, 2, 4, seed=1))
    (record,) = sample.layers
    assert record.log10_dL_dc is not None
    falls = [record.log10_dL_dc[d + 1] - record.log10_dL_dc[d] for d in range(119)]
    assert falls == pytest.approx([-3.0] * 119, abs=1e-9)
    assert record.log10_dL_dc[-1] < -350
    assert record.cut_at is None


def test_saturated_gates_keep_their_slopes():
    """At a bias of 30 a gate reads 1 - 1e-13: its slope has no digits left but in its argument."""
    layer = layer_of("LSTM", 3, 5)
    with torch.no_grad():
        layer.bias_ih_l0[:10] += 30.0
    x = normal(9, 2, 3, seed=1)
    twin = PerStep(layer)
    loss = last_output(twin, x)
    sample = one_sample(Reader(layer, last_output), x)
    assert_same_profiles(sample, loss, twin)
    assert sample.layers[0].saturated_fraction["forget"] == 1.0


def test_what_is_not_finite_is_named_with_its_step():
    """An input, a weight and a gradient that are no numbers: the first is told, with its step."""
    x = normal(7, 3, 3, seed=1)
    x[4, 1, 0] = math.nan
    (layer,) = one_sample(Reader(layer_of("GRU", 3, 5), last_output), x).layers
    assert layer.first_non_finite == BrokenTensor("input", 4)
    broken = layer_of("LSTM", 3, 5)
    with torch.no_grad():
        broken.weight_hh_l0[2, 2] = math.inf
    (layer,) = one_sample(Reader(broken, last_output), normal(7, 3, 3, seed=1)).layers
    assert layer.first_non_finite == BrokenTensor("weight_hh_l0", 0)

    def at_three(rnn: Any, given: Tensor) -> Tensor:
        return rnn(given)[0][3].sum() * math.inf

    found = one_sample(Reader(layer_of("RNN_TANH", 3, 5), at_three), normal(7, 3, 3, seed=1))
    assert found.layers[0].first_non_finite == BrokenTensor("dL/dh", 3)
    assert found.log10_parameter_gradient_norm is None


def test_a_cell_in_float32_says_where_it_underflows():
    """A user's own cell is measured as it trains: beyond 1e-45 float32 has zeros, and no cut."""

    class Halving(nn.Module):
        input_size = hidden_size = 2

        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(2))

        def forward(self, x: Tensor, h: Tensor) -> Tensor:
            return 1e-3 * h + self.scale * x

    cell = Halving()

    class Loop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = cell

        def forward(self, x: Tensor) -> Tensor:
            h = x.new_ones(3, 2)
            for row in x:
                h = self.cell(row, h)
            return h.sum()

    (layer,) = one_sample(Loop(), torch.ones(20, 3, 2)).layers
    assert layer.cut_at is None
    assert layer.log10_dL_dh[16:] == (None,) * 4
    assert any("underflow" in note for note in layer.notes)
    expected = [math.log10(math.sqrt(6.0)) - 3.0 * d for d in range(12)]
    assert layer.log10_dL_dh[:12] == pytest.approx(expected, abs=1e-4)


def test_a_forget_gate_of_one_half_halves_the_cell_states_gradient():
    """With no recurrent weights dL/dc_t is 2^-d times that of the end, at every distance."""
    layer = held_lstm(0.5).double()
    with torch.no_grad():
        layer.weight_hh_l0.zero_()
        layer.weight_ih_l0[16:32].zero_()
        layer.weight_ih_l0[48:].zero_()
        layer.bias_ih_l0[48:] = 40.0
    model = Reader(layer, lambda rnn, x: rnn(x)[1][1].sum())
    (record,) = one_sample(model, normal(30, 2, 4, seed=1)).layers
    start = math.log10(math.sqrt(32.0))
    assert_same_curve(record.log10_dL_dc, [start - d * math.log10(2.0) for d in range(30)])


def test_gates_of_a_users_cell_that_tells_them():
    """`gates` and `gate_values` are what a user's cell may show; they are asked of it as it is."""

    class Keeping(nn.Module):
        input_size = hidden_size = 2
        gates = ({"name": "keep", "role": "keep", "bias": "bias"},)

        def __init__(self) -> None:
            super().__init__()
            self.bias = nn.Parameter(torch.zeros(2))

        def forward(self, x: Tensor, h: Tensor) -> Tensor:
            keep = torch.sigmoid(self.bias)
            return keep * h + (1 - keep) * torch.tanh(x)

        def gate_values(self, x: Tensor, h: Tensor) -> dict[str, Tensor]:
            return {"keep": torch.sigmoid(self.bias).expand_as(h)}

    class Loop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = Keeping()

        def forward(self, x: Tensor) -> Tensor:
            h = x.new_zeros(3, 2)
            for row in x:
                h = self.cell(row, h)
            return h.sum()

    model = Loop()
    with watch(model, every=1) as flow:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.ones(6, 3, 2)).backward()
        optimizer.step()
    (layer,) = flow.samples[0].layers
    assert layer.gate_means == {"keep": pytest.approx(0.5)}
    assert layer.half_life == pytest.approx(1.0, abs=1e-6)
