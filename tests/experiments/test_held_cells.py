"""The subjects of `decay`: what is held at what, from which state, on which device."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from gradflow.cells import CellLike, make_cell
from gradflow.errors import DtypeError, GateValueError, UnknownNameError
from gradflow.experiments.held_cells import (
    HeldCell,
    held_cells,
    keep_gate,
    require_device,
    start_state,
)
from gradflow.settings import DecaySettings
from tests.cases import logit


def _held(cell: str, **settings: Any) -> list[HeldCell]:
    return list(held_cells(cell, DecaySettings(hidden=4, cell=cell, **settings)))


def _weights(cell: CellLike) -> dict[str, Tensor]:
    return {name: tensor.detach() for name, tensor in cell.named_parameters()}


def _gates(held: HeldCell, *, at: float = 0.0) -> dict[str, Tensor]:
    cell = held.cell
    state = tuple(torch.full_like(part, at) for part in cell.initial_state(1))
    x = torch.full((1, 1), at, dtype=cell.dtype)
    return {name: gate.detach() for name, gate in cell.step(x, state).gates.items()}


def test_gains_come_outside_and_gates_inside() -> None:
    """Curves of one gain stand together, in the order asked for."""
    found = [(h.candidate_gain, h.gate_value) for h in _held("gru", gate="0.5,0.1")]
    assert found == [(0.0, 0.5), (0.0, 0.1), (1.0, 0.5), (1.0, 0.1)]


@pytest.mark.parametrize("at", [0.0, 5.0])
def test_every_gate_of_an_lstm_is_held_at_its_value(at: float) -> None:
    """f as asked, i = 1 - f or as given, o = 0.5 or as given, at any input and state."""
    coupled = _gates(_held("lstm", gate=0.9, candidate_gain=0)[0], at=at)
    given = _gates(
        _held("lstm", gate=0.9, candidate_gain=1, input_gate=0.3, output_gate=0.8)[0], at=at
    )
    expected = [(coupled, 0.1, 0.9, 0.5), (given, 0.3, 0.9, 0.8)]
    for gates, write, keep, shown in expected:
        for name, value in (("input", write), ("forget", keep), ("output", shown)):
            assert torch.allclose(gates[name], torch.full((1, 4), value).double(), atol=1e-7)
            assert gates[name].min().item() == pytest.approx(value, rel=1e-14)


def test_a_coupled_input_gate_that_would_round_to_one_is_refused() -> None:
    """1 - 1e-20 is 1 in float64: the message names the flag that was given and the one to give."""
    with pytest.raises(GateValueError, match=r"--gate 1e-20 .* Give --input-gate a value"):
        _held("lstm", gate=1e-20)
    (held,) = _held("lstm", gate=1e-20, input_gate=0.999, candidate_gain=0)
    assert _gates(held)["forget"].max().item() == pytest.approx(1e-20, rel=1e-12)


def test_every_gate_of_a_gru_is_held_at_its_value() -> None:
    """z as asked, r = 0.5 or as given, for both places of the reset gate."""
    for place in ("before", "after"):
        for reset in (0.5, 0.2):
            held = _held("gru", gate=0.7, candidate_gain=1, reset=place, reset_gate=reset)[0]
            gates = _gates(held, at=2.0)
            assert gates["update"].min().item() == pytest.approx(0.7, rel=1e-14)
            assert gates["reset"].max().item() == pytest.approx(reset, rel=1e-14)
            assert held.cell.reset == place
            assert held.gate_name == "update"


def test_one_bias_carries_the_gate_and_all_else_is_zero() -> None:
    """The sum of torch's two biases is logit(value); weights are zero, but for the candidate."""
    for gain in (0.0, 1.5):
        (held,) = _held("lstm", gate=0.9, candidate_gain=gain)
        weights = _weights(held.cell)
        biases = [0.1, 0.9, 0.5, 0.5]
        expected = torch.tensor([logit(v) for v in biases], dtype=torch.float64)
        assert torch.allclose(weights["bias_ih"], expected.repeat_interleave(4), atol=1e-14)
        assert not weights["bias_hh"].any()
        assert not weights["weight_ih"].any()
        candidate = weights["weight_hh"][8:12]
        square = gain**2 * torch.eye(4, dtype=torch.float64)
        assert torch.allclose(candidate @ candidate.T, square, atol=1e-14)
        others = weights["weight_hh"].clone()
        others[8:12] = 0
        assert not others.any()


def test_the_gates_of_one_gain_share_one_matrix() -> None:
    """Curves differ by the gate alone, and gains scale one and the same matrix."""
    settings = {"gate": "0.1,0.9", "candidate_gain": "1,2"}
    matrices = [_weights(held.cell)["weight_hh"] for held in _held("lstm", **settings)]
    assert torch.equal(matrices[0], matrices[1])
    assert torch.allclose(matrices[2], 2 * matrices[0], rtol=1e-15)
    other = _weights(_held("lstm", gate=0.1, candidate_gain=1, seed=1)[0].cell)["weight_hh"]
    assert not torch.allclose(other, matrices[0])


def test_gate_weights_are_the_held_gates_own() -> None:
    """Their scale is the deviation of the gates' weights; the candidate has none of them."""
    cell = _held("lstm", gate=0.5, candidate_gain=0, gate_weights=0.01)[0].cell
    weights = _weights(cell)["weight_hh"]
    assert not weights[8:12].any()
    gates = torch.cat([weights[:8], weights[12:]])
    assert (gates != 0).all()
    assert gates.std().item() == pytest.approx(0.01, rel=0.3)


def test_an_rnn_has_its_gain_and_no_gate() -> None:
    """Each `--gate` is the gain of W = g Q; the candidate gains do not multiply the curves."""
    found = _held("rnn", gate="0.5,1.2", candidate_gain="0,1,2")
    assert [(h.candidate_gain, h.gate_name, h.gate_value) for h in found] == [
        (0.5, None, None),
        (1.2, None, None),
    ]
    matrix = _weights(found[1].cell)["weight_hh"]
    square = 1.2**2 * torch.eye(4, dtype=torch.float64)
    assert torch.allclose(matrix @ matrix.T, square, atol=1e-14)
    assert found[0].can_be_stacked


def test_keep_gates_by_their_role() -> None:
    """forget, update, none."""
    names = []
    for kind in ("lstm", "gru", "rnn"):
        gate = keep_gate(make_cell(kind, 1, 2))
        names.append(None if gate is None else gate.name)
    assert names == ["forget", "update", None]


def test_a_random_start_is_the_seeds_and_alike_for_every_cell() -> None:
    """h lies in (-1, 1), c does not; one seed gives every cell the same h."""
    settings = DecaySettings(hidden=500, seed=3)
    (h,) = start_state(make_cell("gru", 1, 500, dtype=torch.float64), settings)
    also_h, c = start_state(make_cell("lstm", 1, 500, dtype=torch.float64), settings)
    assert torch.equal(h, also_h)
    assert h.shape == (1, 500)
    assert 0.9 < h.abs().max() < 1
    assert c.abs().max() > 2
    assert c.std().item() == pytest.approx(1.0, rel=0.1)
    assert torch.atanh(h).std().item() == pytest.approx(1.0, rel=0.1)
    single = start_state(make_cell("gru", 1, 500, dtype=torch.float32), settings)[0]
    assert torch.equal(single, h.float())
    (other,) = start_state(make_cell("gru", 1, 500, dtype=torch.float64), DecaySettings(seed=4))
    assert not torch.equal(other, h)


def test_a_zero_start_is_zero() -> None:
    """`--start zero` is the fixed point of every held cell."""
    settings = DecaySettings(start="zero")
    for kind in ("lstm", "gru", "rnn"):
        assert not any(part.any() for part in start_state(make_cell(kind, 1, 3), settings))


def test_devices_are_tried_before_they_are_used() -> None:
    """The CPU works in both dtypes; a device that is not there is refused by the flag's name."""
    assert require_device("cpu", torch.float64) == torch.device("cpu")
    for name in ("gpu", "cpuu", "cuda:99"):
        with pytest.raises(UnknownNameError, match=f"--device '{name}'"):
            require_device(name, torch.float64)
    with pytest.raises((UnknownNameError, DtypeError), match="--device"):
        require_device("meta", torch.float64)


def test_a_dtype_reaches_the_cell() -> None:
    """float32 cells hold the nearest float32 of the gate."""
    for dtype in ("float32", "float64"):
        (held,) = _held("gru", gate=0.9, candidate_gain=0, dtype=dtype)
        assert held.cell.dtype == getattr(torch, dtype)
        value = _gates(held)["update"][0, 0].item()
        assert math.isclose(value, 0.9, rel_tol=1e-6 if dtype == "float32" else 1e-15)
