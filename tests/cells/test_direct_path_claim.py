"""How much of an LSTM's gradient the direct path leaves out: the numbers of docs/backward.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from gradflow.cells.numpy_cells import NumpyLSTM
from tests.field_cases import FieldCase, field_case

CASE: FieldCase = field_case("direct_path_against_full")
TEXT = Path(__file__).parents[2].joinpath("docs", "backward.md").read_text(encoding="utf-8")
ALL_PATHS = NumpyLSTM.gate_order
MODELS = ("small_recurrent", "large_recurrent")
each_model = pytest.mark.parametrize("model", MODELS)


def lstm(model: str) -> NumpyLSTM:
    """Return a fresh copy of one of the two cells."""
    return NumpyLSTM.from_parameters(CASE.weights(model))


def cell_jacobian(cell: NumpyLSTM, steps: int, cut: tuple[str, ...] = ()) -> NDArray[np.floating]:
    """Return dc_T/dc_0 (rows c_T) by one backward: batch row k pulls back the k-th unit of c_T."""
    size = cell.hidden_size
    inputs = np.repeat(CASE.arrays["inputs"][:steps, None], size, axis=1)
    ends = (np.zeros((size, size)), np.eye(size))
    gradients = cell.backward(cell.forward(inputs), final_gradient=ends, cut=cut)
    return gradients.initial_state[1]


def spectral(matrix: NDArray[np.floating]) -> float:
    """Return the largest singular value."""
    return float(np.linalg.norm(matrix, 2))


def share_left_out(cell: NumpyLSTM, steps: int) -> float:
    """Return the norm of what the direct path leaves out, over the norm of the whole."""
    full = cell_jacobian(cell, steps)
    return spectral(full - cell_jacobian(cell, steps, ALL_PATHS)) / spectral(full)


def row(*cells: object) -> str:
    """Return a line of a Markdown table."""
    return f"| {' | '.join(str(cell) for cell in cells)} |"


@each_model
def test_the_whole_jacobian_equals_autograd(model: str) -> None:
    """dc_T/dc_0 by the hand-written backward has the norms that torch.autograd gives."""
    expected = CASE.expected[model]
    for index, steps in enumerate(expected["steps"]):
        full = cell_jacobian(lstm(model), steps)
        found = [spectral(full), np.linalg.norm(full)]
        wanted = [expected[key][index] for key in ("full_spectral", "full_frobenius")]
        np.testing.assert_allclose(found, wanted, rtol=CASE.tolerance)


@each_model
def test_the_direct_path_is_the_product_of_forget_gates(model: str) -> None:
    """With the four ways through h cut, dc_T/dc_0 is diagonal: the product of the forget gates."""
    expected = CASE.expected[model]
    for index, steps in enumerate(expected["steps"]):
        direct = cell_jacobian(lstm(model), steps, ALL_PATHS)
        assert np.count_nonzero(direct - np.diag(direct.diagonal())) == 0
        assert direct.max() == pytest.approx(expected["direct_max"][index], rel=CASE.tolerance)


def test_the_whole_is_48_times_the_direct_path() -> None:
    """At T = 20 and large recurrent weights the claim "the rest is negligible" is wrong by 48."""
    cell = lstm("large_recurrent")
    ratio = spectral(cell_jacobian(cell, 20)) / spectral(cell_jacobian(cell, 20, ALL_PATHS))
    assert ratio == pytest.approx(48.35, abs=0.01)


@each_model
def test_the_table_of_ratios_is_what_the_cells_give(model: str) -> None:
    """Every row of the first table of docs/backward.md is recomputed here."""
    for steps in (1, 5, 10, 20, 40):
        cell = lstm(model)
        full = spectral(cell_jacobian(cell, steps))
        direct = spectral(cell_jacobian(cell, steps, ALL_PATHS))
        left_out = f"{share_left_out(cell, steps):.1%}".replace("%", " %")
        name = model.removesuffix("_recurrent")
        line = row(name, steps, f"{direct:.3g}", f"{full:.3g}", f"{full / direct:.2f}", left_out)
        assert line in TEXT, line


@each_model
def test_the_table_of_single_paths_is_what_the_cells_give(model: str) -> None:
    """Cutting one path at a time: the candidate's carries most in both cells."""
    cell = lstm(model)
    full = spectral(cell_jacobian(cell, 20))
    left = {path: spectral(cell_jacobian(cell, 20, (path,))) / full for path in ALL_PATHS}
    assert min(left, key=left.__getitem__) == "candidate"
    shown = [f"{left[path]:.2f}" for path in ("candidate", "input", "forget", "output")]
    line = row(model.removesuffix("_recurrent"), *shown)
    assert line in TEXT, line


@each_model
def test_the_table_of_weight_gradients_is_what_the_cells_give(model: str) -> None:
    """For L = sum of h_T, the cut gradient of weight_hh keeps its direction in one cell only."""
    for steps in (5, 10, 20, 40):
        cell = lstm(model)
        trace = cell.forward(CASE.arrays["inputs"][:steps, None])
        ends = (np.ones((1, cell.hidden_size)), np.zeros((1, cell.hidden_size)))
        true, cut = (
            cell.backward(trace, final_gradient=ends, cut=paths).parameters["weight_hh"]
            for paths in ((), ALL_PATHS)
        )
        lengths = np.linalg.norm(true), np.linalg.norm(cut)
        cosine = (true * cut).sum() / (lengths[0] * lengths[1])
        error = f"{np.linalg.norm(true - cut) / lengths[0]:.0%}".replace("%", " %")
        line = row(model.removesuffix("_recurrent"), steps, error, f"{cosine:.3f}")
        assert line in TEXT, line


def test_an_open_forget_gate_does_not_make_the_rest_negligible() -> None:
    """A forget bias of 5 leaves 86 % out at T = 20; a tenth of the weights leaves a fifth out."""
    opened = lstm("small_recurrent")
    assert opened.bias_ih is not None
    opened.rows(opened.bias_ih, "forget")[:] = 5
    assert share_left_out(opened, 20) == pytest.approx(0.865, abs=0.001)
    weak = lstm("small_recurrent")
    weak.weight_hh *= 0.1
    shares = [share_left_out(weak, steps) for steps in (5, 20, 40)]
    np.testing.assert_allclose(shares, [0.050, 0.208, 0.308], atol=0.001)
