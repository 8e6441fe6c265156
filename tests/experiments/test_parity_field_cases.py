"""Two faults from the field: gate rows in a foreign order, and a reset before the product."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch

from gradflow.checkpoints.parity_sides import Widths, read_side
from gradflow.checkpoints.sides import Problem
from gradflow.experiments.parity import parity, run_parity
from gradflow.settings.parity import ParitySettings
from tests.field_cases import Arrays, field_case
from tests.reference.textbook_gru import TextbookGRUCell

ORDER = field_case("foreign_gate_order")
RESET = field_case("reset_before_product")


def tensors(arrays: Arrays) -> dict[str, torch.Tensor]:
    """Return arrays as tensors."""
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def weights(name: str) -> dict[str, torch.Tensor]:
    """Return one of the readings of the foreign-order case."""
    return tensors(ORDER.weights(name))


RECORDING = {key: torch.from_numpy(ORDER.arrays[key]) for key in ("x", "y")}


# rows in a foreign order


@pytest.mark.parametrize("name", ["right", "onnx_order", "i_f_swapped"])
def test_a_recording_tells_the_order_of_the_gates(name: str):
    """Among 24 orders one reproduces the recorded outputs; torch's own reading is as far off as
    torch says, and so is the second best.
    """
    expected = ORDER.expected[name]
    result = parity(weights(name), dict(RECORDING))
    h = result.comparisons[0]
    assert h.error == pytest.approx(expected["error_read_by_torch"], abs=ORDER.tolerance)
    if name == "right":
        assert result.passed
        return_values = [result.variants, result.nearest, result.first_difference]
        assert return_values == [(), (), None]
    else:
        order = ", ".join(expected["best_order"])
        assert [tried.name for tried in result.variants] == [f"gate order {order}"]
        orders = [tried for tried in result.nearest if tried.name.startswith("gate order")]
        second = ", ".join(expected["second_best_order"])
        assert orders[1].name == f"gate order {second}"
        assert orders[1].error == pytest.approx(expected["second_best_error"], abs=ORDER.tolerance)


def test_onnx_order_is_called_by_its_name_with_the_cure():
    """i, o, f, g is ONNX's; its blocks 0, 2, 3, 1 are torch's."""
    result = parity(weights("onnx_order"), dict(RECORDING), tolerance=1e-12)
    assert result.subject == "a"
    assert any("in the order i, o, f, g (ONNX)" in note for note in result.notes)
    assert any("blocks of rows 0, 2, 3, 1" in note for note in result.notes)
    assert not result.passed


def test_two_files_of_weights_are_told_apart_by_their_gates():
    """Two conversions of one model, compared as they are, backward too."""
    result = parity(weights("right"), weights("i_f_swapped"))
    assert result.subject == "b"
    assert [tried.name for tried in result.variants] == ["gate order f, i, g, o"]
    assert result.first_difference is not None
    assert result.first_difference.gate == "input"


@pytest.mark.parametrize("order", list(permutations("ifgo"))[1:])
def test_every_order_is_found(order: tuple[str, ...]):
    """Whatever the order of the file's blocks, it is the one that is named."""
    blocks = {name: np.split(array, 4) for name, array in ORDER.weights("right").items()}
    foreign = {
        name: np.concatenate([block["ifgo".index(letter)] for letter in order])
        for name, block in blocks.items()
    }
    result = parity(tensors(foreign), dict(RECORDING))
    assert [tried.name for tried in result.variants] == [f"gate order {', '.join(order)}"]


def test_biases_alone_in_a_foreign_order_are_found():
    """A converter that turned the matrices and forgot the biases."""
    right, foreign = weights("right"), weights("onnx_order")
    mixed = {name: (foreign if name.startswith("bias") else right)[name] for name in right}
    result = parity(mixed, dict(RECORDING))
    assert [tried.name for tried in result.variants] == ["gate order i, o, f, g in biases alone"]


def test_onnx_tensors_are_read_in_onnx_order(tmp_path: Path):
    """W, R and B by ONNX's names and order are the same layer, with its gradient."""
    onnx = ORDER.weights("onnx_order")
    np.savez(
        tmp_path / "onnx.npz",
        W=onnx["weight_ih"][None],
        R=onnx["weight_hh"][None],
        B=np.concatenate([onnx["bias_ih"], onnx["bias_hh"]])[None],
    )
    torch.save(weights("right"), tmp_path / "right.pt")
    settings = ParitySettings(a=str(tmp_path / "right.pt"), b=str(tmp_path / "onnx.npz"))
    result = run_parity(settings)
    assert result.passed
    assert result.largest_error == 0.0


def test_a_gru_in_keras_order_is_found():
    """z, r, n with one network's own weights, as Keras and ONNX store them."""
    generator = torch.Generator().manual_seed(8)
    shapes = {"weight_ih": (12, 3), "weight_hh": (12, 4), "bias_ih": (12,), "bias_hh": (12,)}
    right = {
        name: torch.randn(shape, dtype=torch.float64, generator=generator)
        for name, shape in shapes.items()
    }
    keras = {name: torch.cat([t[4:8], t[0:4], t[8:12]]) for name, t in right.items()}
    result = parity(right, keras)
    assert [tried.name for tried in result.variants] == ["gate order z, r, n"]
    assert any("(Keras, ONNX)" in note for note in result.notes)


# a reset before the product


def case_files(folder: Path, *, bias: bool = False) -> dict[str, str]:
    """Write the case's weights and its input with the first state."""
    arrays = RESET.arrays
    named = {n: torch.from_numpy(arrays[n]) for n in ("weight_ih", "weight_hh")}
    for name in ("bias_ih", "bias_hh"):
        array = arrays[name] if bias else np.zeros_like(arrays[name])
        named[name] = torch.from_numpy(array)
    torch.save(named, folder / "weights.pt")
    torch.save(
        {"x": torch.from_numpy(arrays["x"][0]), "h": torch.from_numpy(arrays["h"])},
        folder / "inputs.pt",
    )
    return {"weights": str(folder / "weights.pt"), "data": str(folder / "inputs.pt")}


def test_a_random_state_tells_where_the_reset_is(tmp_path: Path):
    """The error is the one that plain torch finds, and the variant has its name."""
    cell = TextbookGRUCell(4, 5)
    result = parity("torch.GRUCell", cell, **case_files(tmp_path))
    assert result.comparisons[0].error == pytest.approx(
        RESET.expected["h_random_bias_zero"], abs=RESET.tolerance
    )
    assert [tried.name for tried in result.variants] == ["reset before the product"]
    assert any("A variant, no bug" in note for note in result.notes)


def test_the_gradient_differs_by_what_torch_says():
    """dL/dh of the sum of the new state, both cells, as plain autograd has it."""
    state = (torch.from_numpy(RESET.arrays["h"]),)
    ones = torch.ones_like(state[0])
    problem = Problem(torch.from_numpy(RESET.arrays["x"][:1]), state, ones[None], (0 * ones,))
    gradients = []
    for asked in ("torch.GRUCell", TextbookGRUCell(4, 5)):
        side = read_side(asked, Widths(4, 5))
        own = {name: torch.from_numpy(RESET.arrays[name]) for name in side.weights}
        own |= {name: torch.zeros_like(own[name]) for name in own if name.startswith("bias")}
        gradients.append(side.gradients(own, problem).state["h"])
    error = (gradients[0] - gradients[1]).abs().max().item()
    assert error == pytest.approx(RESET.expected["gradient_of_h_bias_zero"], abs=RESET.tolerance)


def test_parity_from_zero_with_zero_biases_does_not_pass():
    """The trap: states of one step agree, but torch's own gradient by b_hn is scaled by the reset,
    and the run itself says which variants it could not have told.
    """
    cell = TextbookGRUCell(4, 5)
    result = parity("torch.GRUCell", cell, start="zero", bias="zero", steps=1)
    state = result.comparisons[0]
    # 1 ulp of a state below 1
    assert state.error <= 2.3e-16
    assert not result.passed
    assert "reset before the product" in result.undecided
    failed = {check.name for check in result.checks if not check.passed}
    assert "the run tells the known variants apart" in failed


def test_even_two_right_cells_fail_the_trap():
    """torch against torch from zero with zero biases: a pass would have meant nothing."""
    result = parity("torch.GRUCell", "torch.GRU", start="zero", bias="zero", steps=1)
    assert result.first_difference is None
    failed = [check for check in result.checks if not check.passed]
    assert [check.name for check in failed] == ["the run tells the known variants apart"]
    assert "--start" in failed[0].detail
    # a random state alone is enough to see the reset; biases are then still unknown
    enough = parity("torch.GRUCell", "torch.GRU", bias="zero", steps=1)
    assert "reset before the product" not in enough.undecided


def test_the_drift_from_zero_starts_at_the_second_step(tmp_path: Path):
    """With zero biases the first step agrees and the later ones part, as plain torch has it."""
    files = case_files(tmp_path)
    arrays = {"x": torch.from_numpy(RESET.arrays["x"]), "h": torch.zeros(3, 5).double()}
    torch.save(arrays, files["data"])
    result = parity("torch.GRUCell", TextbookGRUCell(4, 5), **files)
    state = result.comparisons[0]
    assert state.first_step == 2
    assert state.errors == pytest.approx(RESET.expected["by_step_from_zero"], abs=RESET.tolerance)


def test_biases_alone_tell_the_reset_from_a_zero_state(tmp_path: Path):
    """b_hn is scaled by the reset in torch and not in the textbook, also from h = 0."""
    files = case_files(tmp_path, bias=True)
    arrays = {"x": torch.from_numpy(RESET.arrays["x"][0]), "h": torch.zeros(3, 5).double()}
    torch.save(arrays, files["data"])
    result = parity("torch.GRUCell", TextbookGRUCell(4, 5), **files)
    assert result.comparisons[0].error == pytest.approx(
        RESET.expected["h_zero_bias_random"], abs=RESET.tolerance
    )


# time and batch on each other's axis


def test_a_recording_with_its_axes_exchanged_is_told():
    """(batch, time, width) for (time, batch, width): no shape is wrong, every number is."""
    turned = {key: tensor.transpose(0, 1) for key, tensor in RECORDING.items()}
    result = parity(weights("right"), turned)
    assert not result.passed
    assert any("axes in the order (batch, time, width)" in note for note in result.notes)
