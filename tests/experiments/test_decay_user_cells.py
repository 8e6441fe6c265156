"""A user's own cell in `decay`: measured as it is, or held where it declares its gates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gradflow.cells import register_cell, registry
from gradflow.errors import GateValueError
from tests import cases
from tests.experiments.decay_curves import curve, one, run


class Bare(nn.Module):
    """An RNN cell that declares nothing: h' = tanh(W h + V x)."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.w = nn.Parameter(torch.randn(hidden_size, hidden_size, generator=generator) / 4)
        self.v = nn.Parameter(torch.randn(hidden_size, input_size, generator=generator))

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """Return the new h."""
        return torch.tanh(x @ self.v.T + h @ self.w.T)


class Minimal(nn.Module):
    """A minimal gated cell with one keep gate of its own: h' = k h + (1 - k) tanh(U h + V x)."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.keep = nn.Linear(input_size + hidden_size, hidden_size)
        self.new = nn.Linear(input_size + hidden_size, hidden_size)
        width = f"{input_size}:{input_size + hidden_size}"
        self.gates = [
            {"name": "keep", "role": "keep", "bias": "keep.bias", "weights": "keep.weight"},
            {
                "name": "new",
                "role": "candidate",
                "bias": "new.bias",
                "weights": "new.weight",
                "recurrent": f"new.weight[:, {width}]",
            },
        ]

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """Return the new h."""
        both = torch.cat([x, h], dim=-1)
        keep = torch.sigmoid(self.keep(both))
        return keep * h + (1 - keep) * torch.tanh(self.new(both))


class ThreeParts(nn.Module):
    """Three parts that shift: a' = tanh(b), b' = c / 2, c' = a."""

    parts = ("a", "b", "c")

    def forward(self, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Return (a', b', c')."""
        a, b, c = state
        return torch.tanh(b) + 0 * x.sum(), 0.5 * c, a


class Broken(Bare):
    """A cell whose derivative is 0/0 at h = 0, though its value is fine."""

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """Return a root of a square: |h W| with a NaN slope at zero."""
        return torch.sqrt((h @ self.w.T) ** 2) + 0 * x.sum()


@pytest.fixture(name="register")
def _register(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    monkeypatch.setattr(registry, "_registered", {})
    return register_cell


def test_a_cell_without_gates_is_measured_once_as_it_is(
    register: Callable[..., None],
) -> None:
    """One curve whatever the gates and gains asked for: no gate, no trend, and autograd agrees."""
    register("bare", Bare)
    result = run(cell="bare", gate="0.1,0.9", candidate_gain="0,1")
    (found,) = result.curves
    assert found.gate_name is found.gate_value is found.candidate_gain is None
    assert found.trend_log10 is found.trend_rate is None
    assert found.method == "generic"
    assert result.passed
    assert found.autograd is not None
    assert found.autograd.subject == "Bare"
    assert found.autograd.max_relative_error is not None
    assert any("measured as it is" in note for note in result.notes)
    module = Bare(1, 6).double()
    state = torch.tanh(
        torch.randn(1, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ).requires_grad_()
    after = module(torch.zeros(1, 1, dtype=torch.float64), state)
    rows = [torch.autograd.grad(unit, state, retain_graph=True)[0][0] for unit in after[0]]
    expected = torch.linalg.matrix_norm(torch.stack(rows), ord=2).log10().item()
    assert found.log10_norm[0] == pytest.approx(expected, rel=1e-10)


def test_a_cell_that_declares_its_gates_gets_the_whole_experiment(
    register: Callable[..., None],
) -> None:
    """Held at k with a dead candidate it keeps k^T; with a live one it departs; checks pass."""
    register("minimal", Minimal)
    result = run(cell="minimal", gate="0.5,0.9")
    assert result.passed
    assert any(check.name == "larger keep gate decays slower" for check in result.checks)
    steps = np.arange(1, 41)
    for gate in (0.5, 0.9):
        for path in ("full", "direct"):
            dead = curve(result, gate_value=gate, candidate_gain=0.0, path=path)
            cases.assert_same_log_norm(dead.log10_norm, steps * math.log10(gate))
            assert dead.gate_name == "keep"
            assert dead.gate_min == dead.gate_max == pytest.approx(gate, rel=1e-14)
        live = curve(result, gate_value=gate, candidate_gain=1.0)
        assert live.departure is not None
        assert live.departure > 0.001


def test_what_a_cell_says_of_itself_is_beside_its_curves(register: Callable[..., None]) -> None:
    """A declared keep gate that adds a constant of its own is measured, with a word on it."""

    class Shifted(Minimal):
        def forward(self, x: Tensor, h: Tensor) -> Tensor:
            both = torch.cat([x, h], dim=-1)
            keep = torch.sigmoid(self.keep(both) + 1)
            return keep * h + (1 - keep) * torch.tanh(self.new(both))

    register("shifted", Shifted)
    result = run(cell="shifted", gate=0.5)
    assert any(note.startswith("shifted: held at 0.3") for note in result.notes)


def test_a_state_of_three_parts_is_measured_by_its_parts(register: Callable[..., None]) -> None:
    """a -> c -> b -> a: each part's own block is zero but for every third step."""
    register("shift", ThreeParts)
    found = one(cell="shift", state="a", start="zero", steps=6)
    nothing = -math.inf
    half = math.log10(0.5)
    expected = [nothing, nothing, half, nothing, nothing, 2 * half]
    cases.assert_same_log_norm(found.log10_norm, expected)
    assert (found.first_zero_step, found.zero_reason) == (1, "exact")
    joint = one(cell="shift", state="joint", start="zero", steps=6)
    cases.assert_same_log_norm(joint.log10_norm, [0, 0, half, half, half, 2 * half])


def test_a_derivative_that_is_no_number_fails_the_check_and_crashes_nothing(
    register: Callable[..., None],
) -> None:
    """A finite forward with a NaN slope: the norm is NaN, the check says where, null in JSON."""
    register("broken", Broken)
    result = run(cell="broken", start="zero")
    (found,) = result.curves
    assert np.isnan(found.log10_norm).all()
    assert found.rate is found.half_life is found.first_zero_step is None
    failed = {check.name: check.detail for check in result.checks if not check.passed}
    assert "every number is finite or a known zero" in failed
    assert "broken" in failed["every number is finite or a known zero"]
    assert set(result.to_json()["results"]["curves"][0]["log10_norm"]) == {None}


def test_a_gain_that_a_cell_cannot_take_is_refused(register: Callable[..., None]) -> None:
    """Without a declared candidate there is no matrix to set: gain 0 works, gain 1 is refused."""

    class NoCandidate(Minimal):
        def __init__(self, input_size: int, hidden_size: int) -> None:
            super().__init__(input_size, hidden_size)
            self.gates = self.gates[:1]

    register("no-candidate", NoCandidate)
    assert run(cell="no-candidate", candidate_gain=0).passed
    with pytest.raises(GateValueError, match="candidate"):
        run(cell="no-candidate", candidate_gain=1)


def test_a_keep_gate_alone_gives_the_half_of_the_experiment_without_a_candidate(
    register: Callable[[str, object], None],
):
    """A cell that hides its candidate is held with the candidate off, and the run says so."""

    class KeepOnly(Minimal):
        """The minimal gated cell, telling its keep gate and nothing else."""

        def __init__(self, input_size: int, hidden_size: int) -> None:
            super().__init__(input_size, hidden_size)
            self.gates = self.gates[:1]

    register("keep-only", KeepOnly)
    result = run(cell="keep-only", gate=(0.5,), steps=8, hidden=3)
    assert {found.candidate_gain for found in result.curves} == {0.0}
    assert curve(result, path="full").rate == pytest.approx(math.log(0.5), abs=1e-12)
    assert any("candidate gain 1 is left out" in note for note in result.notes)
    with pytest.raises(GateValueError, match="role 'candidate'"):
        run(cell="keep-only", candidate_gain=(1.0,), steps=2, hidden=3)
