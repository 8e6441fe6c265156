"""Arguments that are no gains, names, sizes, blocks or steps: refused, and nothing is changed."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gradflow.cells import GRU, LSTM, RNN, hold_, register_cell
from gradflow.config import DecaySettings, SaturateSettings
from gradflow.engine import jacobian_norms
from gradflow.errors import (
    CellLoadError,
    DtypeError,
    GateValueError,
    ShapeError,
    UnknownNameError,
)
from gradflow.experiments.decay import run_decay
from gradflow.experiments.saturate import run_saturate

pytestmark = pytest.mark.usefixtures("unchecked_annotations")
STEPS = torch.zeros(5, 1, 2, dtype=torch.float64)


def lstm() -> LSTM:
    """Return a small LSTM in float64."""
    return LSTM(2, 3, dtype=torch.float64)


@pytest.mark.parametrize("name", ["candidate_gain", "gate_weights"])
@pytest.mark.parametrize("value", ["1", None, 1j, 10**400, float("nan"), -1.0, 1e308])
def test_a_scale_is_a_number_that_the_dtype_has_room_for(name: str, value: Any) -> None:
    """A scale near the end of the dtype draws infinite weights, and a text is no scale."""
    cell = lstm()
    before = [parameter.clone() for parameter in cell.parameters()]
    with pytest.raises(GateValueError, match=name):
        hold_(cell, forget=0.5, **{name: value})
    assert all(map(torch.equal, before, cell.parameters()))


def test_the_room_is_that_of_the_cells_dtype() -> None:
    """1e38 fits float32 itself, but not what a normal of that deviation draws."""
    hold_(lstm(), forget=0.5, gate_weights=1e38)
    with pytest.raises(GateValueError, match=r"torch\.float32 cannot hold.*Use 2e\+37 or less"):
        hold_(LSTM(2, 3, dtype=torch.float32), forget=0.5, gate_weights=1e38)


@pytest.mark.parametrize("value", [10**400, "0.5", None, [0.5]])
def test_a_gate_value_is_a_number(value: Any) -> None:
    """A whole number too large for a float lies outside of (0, 1) like any other."""
    with pytest.raises(GateValueError, match="strictly between 0 and 1"):
        hold_(lstm(), forget=value)


@pytest.mark.parametrize(("value", "dtype"), [(1e-38, torch.float32), (1e-308, torch.float64)])
def test_a_gate_value_is_no_subnormal_number(value: float, dtype: torch.dtype) -> None:
    """Processors may flush subnormal numbers to 0, and then no gate is held at the value."""
    with pytest.raises(GateValueError, match=r"which rounds it to 0\.0"):
        hold_(LSTM(2, 3, dtype=dtype), forget=value)
    hold_(LSTM(2, 3, dtype=dtype), forget=torch.finfo(dtype).tiny * 2)


def test_only_modules_are_held() -> None:
    """What has no parameters cannot be held."""
    nothing: Any = None
    with pytest.raises(CellLoadError, match="got a NoneType"):
        hold_(nothing)


def test_the_random_matrices_come_from_the_cpu_whatever_the_default_device() -> None:
    """One seed gives one matrix on every device, so no default device may take the draw."""
    wanted = hold_(lstm(), candidate_gain=1.0, generator=torch.Generator().manual_seed(3))
    cell = lstm()
    with torch.device("meta"):
        hold_(cell, candidate_gain=1.0, generator=torch.Generator("cpu").manual_seed(3))
    torch.testing.assert_close(cell.weight_hh, wanted.weight_hh, rtol=0, atol=0)


@pytest.mark.parametrize("kind", [LSTM, GRU, RNN])
@pytest.mark.parametrize("size", ["2", 2.0, None, 0, -1])
def test_a_width_is_a_whole_number(kind: Any, size: Any) -> None:
    """Half a unit does not exist, nor does a unit that is a text."""
    with pytest.raises(ShapeError, match="input_size counts units"):
        kind(size, 3)


@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64, "float64"])
def test_a_cell_computes_in_real_numbers(dtype: Any) -> None:
    """Whole numbers have no gradient, and the Jacobians here are real."""
    with pytest.raises(DtypeError, match="real numbers"):
        LSTM(2, 3, dtype=dtype)


@pytest.mark.parametrize("name", [None, 5, "", "a b"])
def test_a_cells_name_is_a_word(name: Any) -> None:
    """A name has to be written after --cell."""
    with pytest.raises(CellLoadError, match="letters, digits"):
        register_cell(name, LSTM)


def test_a_factory_can_be_called() -> None:
    """A cell that is registered is made later, so what cannot make one is refused at once."""
    factory: Any = 5
    with pytest.raises(CellLoadError, match=r"factory of cell 'mine'.*got a int"):
        register_cell("mine", factory)


@pytest.mark.parametrize("block", ["c", ("c",), ("c", "c", "c"), 5, ("c", "joint"), ("c", None)])
def test_a_block_is_joint_or_a_pair_of_parts(block: Any) -> None:
    """A third part would be ignored, and one alone does not say what is read."""
    cell = lstm()
    with pytest.raises(UnknownNameError, match=r"a block is 'joint', or a pair|no part"):
        jacobian_norms(cell, STEPS, cell.initial_state(1), block=block)


@pytest.mark.parametrize("at", [[1.5], [0], [6], "1", [None], [2**70], [], [float("nan")]])
def test_a_step_is_a_whole_number_within_the_run(at: Any) -> None:
    """Step 1.5 does not exist, and reading it as 1 would answer another question."""
    cell = lstm()
    with pytest.raises(ShapeError, match="'at' lists steps from 1 to 5"):
        jacobian_norms(cell, STEPS, cell.initial_state(1), at=at)


def test_whole_numbers_in_floats_are_steps() -> None:
    """np.logspace gives floats; those that are whole are steps."""
    cell = lstm()
    at: Any = [1.0, 5.0]
    assert jacobian_norms(cell, STEPS, cell.initial_state(1), at=at).steps.tolist() == [1, 5]


def test_a_measurement_is_the_same_in_inference_mode() -> None:
    """Inference mode takes gradients away, and both experiments need their own."""
    decay = DecaySettings(cell="lstm", gate="0.5", steps=3, hidden=2)
    saturate = SaturateSettings(cell="lstm", dtype="float32", magnitude="max", steps=2)
    outside = run_saturate(saturate).results_json()
    with torch.inference_mode():
        assert run_decay(decay).passed
        assert run_saturate(saturate).results_json() == outside
