"""The paths of a user's own cell: as much as it tells of its gates, and a sentence for the rest."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradflow.cells import LSTM
from gradflow.cells.foreign import ForeignCell
from gradflow.engine import PathNorms, path_norms
from gradflow.errors import CellLoadError
from tests import cases

SUBJECT = cases.random_subject("lstm")
NAMES = ("input", "forget", "output", "candidate")


class OwnLSTM(nn.Module):
    """An LSTM as a user writes it around torch's cell, with its gates told."""

    squash = staticmethod(torch.sigmoid)

    def __init__(self) -> None:
        super().__init__()
        self.cell = SUBJECT.module
        self.input_size, self.hidden_size = 3, 5
        self.gates = [
            {
                "name": name,
                "role": role,
                "bias": [f"cell.bias_{which}[{first}:{first + 5}]" for which in ("ih", "hh")],
                "weights": [f"cell.weight_{which}[{first}:{first + 5}]" for which in ("ih", "hh")],
            }
            for first, (name, role) in zip(range(0, 20, 5), LSTM.row_order, strict=True)
        ]

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        h, c = self.cell(x, state)
        return h, c

    def gate_values(self, x: Tensor, state: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
        own = LSTM(3, 5, dtype=torch.float64)
        own.load_state_dict(self.cell.state_dict())
        step = own.step(x, state)
        assert step.candidate is not None
        return {**step.gates, "candidate": step.candidate}


class SecretiveLSTM(OwnLSTM):
    """The same, but it shows no values."""

    gate_values = None  # type: ignore[assignment]


class MistakenLSTM(OwnLSTM):
    """The same, but what it shows as its input gate is another number."""

    def gate_values(self, x: Tensor, state: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
        values = super().gate_values(x, state)
        return {**values, "input": values["input"] / 2}


def paths_of(module: nn.Module, **options: Any) -> PathNorms:
    """Return the path norms of a user's module at the shared subject's input and state."""
    return path_norms(ForeignCell(module), SUBJECT.inputs, SUBJECT.state, **options)


def test_a_cell_that_tells_its_gates_is_measured_like_a_built_in_one() -> None:
    """Full, direct, rest, blocks and every ablation equal those of the closed form."""
    built_in = LSTM.from_torch(SUBJECT.module)
    expected = path_norms(built_in, SUBJECT.inputs, SUBJECT.state)
    found = paths_of(OwnLSTM())
    for name in ("full", "direct", "rest"):
        cases.assert_same_log_norm(getattr(found, name), getattr(expected, name), tolerance=1e-11)
    for block, norms in expected.blocks.items():
        cases.assert_same_log_norm(found.blocks[block], norms)
    assert set(found.without) == set(NAMES)
    for gate, norms in expected.without.items():
        cases.assert_same_log_norm(found.without[gate], norms, tolerance=1e-11)
    assert found.notes == ()


def test_gates_can_be_cut_in_a_user_s_cell_too() -> None:
    """With all gates constant, only the product of its forget gates is left."""
    found = paths_of(OwnLSTM(), cut=NAMES)
    assert found.direct is not None
    cases.assert_same_log_norm(found.full, found.direct)
    assert torch.isneginf(found.rest).all()  # type: ignore[arg-type]


def test_a_cell_that_shows_no_values_is_measured_as_far_as_it_goes() -> None:
    """Full and blocks are there; without its values no gate can be a direct path or be cut."""
    found = paths_of(SecretiveLSTM())
    assert found.direct is None
    assert found.without == {}
    assert len(found.notes) == len(NAMES)
    assert "without 'input': that needs the gate's bias and weights declared" in found.notes[0]
    with pytest.raises(CellLoadError, match="cannot be measured without 'forget'"):
        paths_of(SecretiveLSTM(), cut=["forget"])


def test_a_gate_that_is_not_what_it_shows_is_found_out() -> None:
    """Held at the value that it claims, the step would be another: no number, but a note."""
    found = paths_of(MistakenLSTM())
    assert set(found.without) == set(NAMES) - {"input"}
    (note,) = found.notes
    assert "with its bias at the value that it shows" in note


def test_a_cell_that_declares_nothing_has_a_full_path_alone() -> None:
    """No gates, no direct path; the sentence about each gate is not needed."""

    class Bare(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = SUBJECT.module

        def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
            h, c = self.cell(x, state)
            return h, c

    cell = ForeignCell(Bare(), input_size=3, hidden_size=5)
    found = path_norms(cell, SUBJECT.inputs, SUBJECT.state)
    assert (found.direct, found.rest, found.without, found.notes) == (None, None, {}, ())
    expected = path_norms(LSTM.from_torch(SUBJECT.module), SUBJECT.inputs, SUBJECT.state)
    cases.assert_same_log_norm(found.blocks["joint"], expected.blocks["joint"])
