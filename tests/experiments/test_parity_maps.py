"""A user's own word on the weights: a file of places, a function, an order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from gradflow.checkpoints.sides.weight_map import read_weight_map
from gradflow.errors import CellLoadError, SettingError
from gradflow.experiments.parity import parity, run_parity
from gradflow.settings.parity import ParitySettings
from tests.data import parity_steps

GRU = nn.GRUCell(3, 5)
# z of `writing_gru` writes, so its rows are torch's negated.
PLACES: dict[str, str | list[str]] = {
    "W_r": "weight_ih[0:5]",
    "W_z": "-weight_ih[5:10]",
    "W_n": "weight_ih[10:15]",
    "U_r": "weight_hh[0:5]",
    "U_z": "-weight_hh[5:10]",
    "U_n": "weight_hh[10:15]",
    "b_r": ["bias_ih[0:5]", "bias_hh[0:5]"],
    "b_z": ["-bias_ih[5:10]", "-bias_hh[5:10]"],
    "b_in": "bias_ih[10:15]",
    "b_hn": "bias_hh[10:15]",
}


def toml(places: dict[str, str | list[str]]) -> str:
    """Return places as a TOML file."""
    return "[map]\n" + "".join(f'"{key}" = {json.dumps(value)}\n' for key, value in places.items())


def test_without_a_map_the_swapped_gate_is_a_difference():
    """Names say what each weight is, and they are right: the convention is what differs."""
    assert [v.name for v in parity(GRU, parity_steps.writing_gru).variants] == ["z swapped"]


@pytest.mark.parametrize(
    "given",
    [PLACES, parity_steps.map_of_writing_gru, parity_steps.numpy_map_of_writing_gru],
    ids=["places", "function", "NumPy function"],
)
def test_with_a_map_the_same_cell_is_torchs(given: object):
    """Forward and backward: gradients come back through the map, also one that leaves torch."""
    result = parity(GRU, parity_steps.writing_gru, given)
    assert result.passed, result.verdict
    assert any(c.quantity == "weights on h" for c in result.comparisons)


@pytest.mark.parametrize("ending", [".toml", ".json"])
def test_a_map_may_be_a_file(tmp_path: Path, ending: str):
    """TOML or JSON; the places are shown with the result."""
    path = tmp_path / f"map{ending}"
    path.write_text(toml(PLACES) if ending == ".toml" else json.dumps({"map": PLACES}))
    file = Path(parity_steps.__file__)
    settings = ParitySettings(a="gru", b=f"{file}:writing_gru", weight_map=str(path))
    result = run_parity(settings)
    assert result.passed
    rows = {row.b: row.a for row in result.mapping}
    assert rows["U_z"] == "-weight_hh[5:10]"
    assert rows["b_r"] == "bias_ih[0:5] + bias_hh[0:5]"


def test_a_map_may_be_a_function_of_a_file():
    """file.py:function, as everywhere."""
    file = Path(parity_steps.__file__)
    settings = ParitySettings(
        a="torch.GRUCell", b=f"{file}:writing_gru", weight_map=f"{file}:map_of_writing_gru"
    )
    assert run_parity(settings).passed


def test_a_file_may_say_nothing_but_the_order(tmp_path: Path):
    """The rest is found by names and shapes."""
    path = tmp_path / "order.toml"
    path.write_text('gate_order = "i,f,o,g"\n')
    assert parity(nn.LSTMCell(3, 5), parity_steps.stacked_ifog, str(path)).passed


def test_a_wrong_map_is_a_difference_that_is_named():
    """Two gates exchanged in the map: as good as two gates exchanged in the code."""
    swapped = {**PLACES, "W_r": PLACES["W_z"], "W_z": PLACES["W_r"]}
    result = parity(GRU, parity_steps.writing_gru, swapped)
    assert not result.passed
    assert result.first_difference is not None
    assert result.first_difference.step == 1


def test_transposed_places_are_read():
    """Where the other side multiplies from the right, the place ends in .T."""

    def step(x: torch.Tensor, h: torch.Tensor, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ A + h @ B)

    places = {"A": "weight_ih.T", "B": "weight_hh.T"}
    assert parity(nn.RNNCell(4, 4, bias=False), step, places, input_size=4, hidden=4).passed
    wrong = {"A": "weight_ih.T", "B": "weight_hh"}
    assert not parity(nn.RNNCell(4, 4, bias=False), step, wrong, input_size=4, hidden=4).passed


# words


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"W_q": "weight_ih[0:5]"}, CellLoadError, "B has no weight 'W_q'. Did you mean"),
        ({"W_r": "weight_hi[0:5]"}, CellLoadError, "A has no weight 'weight_hi'. Did you mean"),
        ({"W_r": "weight_ih[0:4]"}, CellLoadError, r"W_r is \(5, 3\), and what goes there"),
        ({"W_r": 3}, SettingError, "one place of A's or a list"),
        (parity_steps.misnamed_map, CellLoadError, "B has no weight 'W_q'"),
        (lambda a: None, CellLoadError, "must return a dict of B's weights"),
        (lambda a: 1 / 0, CellLoadError, "division by zero"),
        ("nowhere.toml", SettingError, "--weight-map cannot read 'nowhere.toml'"),
        (3, SettingError, "got a int"),
    ],
)
def test_a_map_that_does_not_fit_is_refused_in_words(
    given: object, error: type[Exception], words: str
):
    """The place, the side and the nearest name."""
    with pytest.raises(error, match=words):
        parity(GRU, parity_steps.writing_gru, given)


def test_a_file_that_is_no_map_is_refused(tmp_path: Path):
    """TOML that is none."""
    path = tmp_path / "broken.toml"
    path.write_text("W_r = [")
    with pytest.raises(SettingError, match="cannot read"):
        read_weight_map(str(path))
