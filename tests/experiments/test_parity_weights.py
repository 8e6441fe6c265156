"""Whose weights are compared: random ones, a file's, each side's own, and where they stand."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from gradflow.errors import SettingError
from gradflow.experiments.parity import parity, run_parity
from gradflow.settings.parity import ParitySettings
from tests.data import parity_steps


def test_a_file_of_weights_serves_both_sides(tmp_path: Path):
    """A trained layer's numbers in a step function that has none of its own."""
    state = nn.LSTM(3, 4).state_dict()
    torch.save(state, tmp_path / "trained.pt")
    file = f"{Path(parity_steps.__file__)}:textbook_lstm"
    result = run_parity(ParitySettings(a=str(tmp_path / "trained.pt"), b=file, steps=2))
    assert result.passed, result.verdict
    assert result.sizes["hidden_size"] == 4
    torch.save({k.removesuffix("_l0"): v for k, v in state.items()}, tmp_path / "plain.pt")
    given = run_parity(ParitySettings(a="gru", b="torch.GRUCell", weights="random"))
    assert given.passed
    both = ParitySettings(a="lstm", b="torch.LSTM", weights=str(tmp_path / "plain.pt"))
    assert run_parity(both).sizes["hidden_size"] == 4


def test_a_step_function_has_no_weights_to_keep():
    """With "own" that is said, not compared on zeros."""
    with pytest.raises(SettingError, match="has no weights of its own"):
        parity("torch.LSTMCell", parity_steps.textbook_lstm, weights="own")


def test_a_wide_numpy_function_is_compared_forward_only():
    """Its gradient would take four runs an entry; the states are compared, and that is said."""
    result = parity("torch.LSTM", parity_steps.textbook_lstm, input_size=24, hidden=32)
    assert result.passed
    assert {comparison.group for comparison in result.comparisons} == {"state"}
    assert any("gradients were not" in note for note in result.notes)
    assert result.verdict.startswith(
        "Parity holds: torch.LSTM and textbook_lstm agree in every state."
    )


def test_a_modules_own_word_on_its_gates_is_taken():
    """`gates` names the rows, so a stacked layer in another order is no guess."""

    class Declared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.input_size, self.hidden_size = 3, 2
            self.lin = nn.Linear(5, 8)
            roles = ("output", "write", "candidate", "keep")
            self.gates = [
                {
                    "name": role,
                    "role": role,
                    "bias": f"lin.bias[{2 * index}:{2 * index + 2}]",
                    "weights": f"lin.weight[{2 * index}:{2 * index + 2}]",
                }
                for index, role in enumerate(roles)
            ]

        def forward(
            self, x: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor]
        ) -> tuple[torch.Tensor, torch.Tensor]:
            h, c = state
            o, i, g, f = self.lin(torch.cat([x, h], 1)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            return torch.sigmoid(o) * torch.tanh(c), c

    result = parity(Declared(), "torch.LSTM")
    assert result.passed, result.notes
    places = {(row.gate, row.reads): row.a for row in result.mapping}
    assert places["forget", "h"] == "lin.weight[6:8, 3:5]"
