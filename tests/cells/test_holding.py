"""Held gates: constant whatever comes, and the curves that follow from it."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from gradflow.cells import GRU, LSTM, RNN, Cell, hold_, logit, orthogonal_matrix, stack_cells
from gradflow.errors import CellLoadError, GateValueError, UnknownNameError
from tests.cells.user_modules import MinimalGatedUnit

GATED = [LSTM, GRU, lambda *sizes, **options: GRU(*sizes, reset="before", **options)]


def arguments(cell: Cell, *, batch: int = 4, scale: float = 3.0) -> tuple[torch.Tensor, ...]:
    """Return a large random input and state for the cell."""
    generator = torch.Generator().manual_seed(0)

    def normal(width: int) -> torch.Tensor:
        drawn = torch.randn(batch, width, generator=generator, dtype=torch.float64)
        return scale * drawn.to(cell.dtype)

    return normal(cell.input_size), tuple(normal(width) for width in cell.part_sizes)


# closed form


@given(
    st.floats(1e-6, 1 - 1e-6),
    st.floats(1e-6, 1 - 1e-6),
    st.sampled_from([LSTM(2, 3).double(), GRU(2, 3).double(), GRU(2, 3, reset="before").double()]),
)
def test_a_held_gate_has_its_value_at_every_input_and_state(
    first: float, second: float, cell: Cell
) -> None:
    """sigmoid(logit(v)) is v to the last digits, and the others sit at one half."""
    names = [gate.name for gate in cell.gates]
    hold_(cell, **{names[0]: first, names[1]: second})
    step = cell.step(*arguments(cell))
    # logit(v) is rounded to 1e-16 of at most 14; the slope v (1 - v) makes that a relative 14e-16
    for name, value in zip(names, (first, second, 0.5), strict=False):
        expected = torch.full_like(step[name], value)
        torch.testing.assert_close(step[name], expected, rtol=4e-15, atol=0)
        assert (step[name] == step[name][0, 0]).all(), "exactly constant"


def test_one_bias_carries_the_logit_and_all_else_is_zero() -> None:
    """torch adds two bias vectors: set in both, the gate would be at sigmoid(2 logit)."""
    cell = hold_(LSTM(2, 3).double(), forget=0.9, input=0.2)
    forget, write = cell.rows("forget"), cell.rows("input")
    assert logit(0.9) == pytest.approx(math.log(9.0), rel=1e-15)
    assert torch.all(cell.bias_ih[forget] == logit(0.9))
    assert torch.all(cell.bias_ih[write] == logit(0.2))
    rest = cell.bias_ih.clone()
    rest[forget] = rest[write] = 0
    for tensor in (rest, cell.bias_hh, cell.weight_ih, cell.weight_hh):
        assert not torch.any(tensor)


@pytest.mark.parametrize("make", [LSTM, GRU, RNN])
def test_a_live_candidate_has_gain_times_an_orthogonal_matrix(make: type[Cell]) -> None:
    """U^T U is gain squared times I, in the candidate's rows alone."""
    cell = hold_(make(2, 4).double(), candidate_gain=1.5)
    rows = cell.rows("candidate")
    matrix = cell.weight_hh[rows].detach().clone()
    identity = torch.eye(4, dtype=torch.float64)
    torch.testing.assert_close(matrix.T @ matrix, 2.25 * identity, rtol=1e-13, atol=1e-13)
    with torch.no_grad():
        cell.weight_hh[rows] = 0
    assert not any(torch.any(parameter) for parameter in cell.parameters())


@pytest.mark.parametrize("make", GATED)
def test_nearly_constant_gates_move_by_their_weights_alone(make: type[Cell]) -> None:
    """With weights of scale S the gate stays near its value; the deviation grows like S."""
    spread = []
    for scale in (1e-4, 1e-2):
        cell = make(2, 3).double()
        keep = cell.keep_gate
        assert keep is not None
        generator = torch.Generator().manual_seed(1)
        hold_(cell, gate_weights=scale, generator=generator, **{keep.name: 0.8})
        value = cell.step(*arguments(cell))[keep.name]
        spread.append((value - 0.8).abs().max().item())
        others = [gate for gate in cell.gates if gate is not keep and gate.name != keep.name]
        assert all(not torch.any(rows.weight_of(cell)) for gate in others for rows in gate.weights)
    # the sigmoid is curved, so the ratio is 100 only up to the square of the deviation
    assert spread[1] / spread[0] == pytest.approx(100, rel=0.05)


def test_an_orthogonal_matrix_is_one_seed_in_every_dtype() -> None:
    """Drawn in float64 and rounded: float32 and float64 get the same matrix."""
    draws = [
        orthogonal_matrix(
            5, like=torch.empty(0, dtype=dtype), generator=torch.Generator().manual_seed(3)
        )
        for dtype in (torch.float64, torch.float32)
    ]
    assert torch.equal(draws[0].float(), draws[1])


def test_orthogonal_matrices_are_uniform() -> None:
    """Under Haar measure every entry has mean 0 and mean square 1/n; plain QR has a mean of -0.4.

    2000 matrices of size 3: a mean of n entries has a standard error of 0.58/45 = 0.013.
    """
    generator = torch.Generator().manual_seed(0)
    like = torch.empty(0, dtype=torch.float64)
    drawn = torch.stack([orthogonal_matrix(3, like=like, generator=generator) for _ in range(2000)])
    assert drawn.mean(0).abs().max() < 0.06
    assert ((drawn**2).mean(0) - 1 / 3).abs().max() < 0.04


def test_one_seed_is_one_candidate_matrix_for_every_gate_value_and_scale() -> None:
    """Curves for other values differ by what was asked, not by their random matrices."""

    def drawn(**options: float) -> torch.Tensor:
        generator = torch.Generator().manual_seed(7)
        cell = hold_(LSTM(2, 3).double(), candidate_gain=1.0, generator=generator, **options)
        return cell.weight_hh[cell.rows("candidate")]

    first = drawn(forget=0.9)
    assert torch.equal(first, drawn(forget=0.1))
    assert torch.equal(first, drawn(forget=0.1, gate_weights=0.1))


# reference


def test_all_members_of_an_ensemble_are_held_alike() -> None:
    """Holding an ensemble is holding each member before stacking, where the values are equal."""
    ensemble = hold_(stack_cells([GRU(2, 3).double() for _ in range(4)]), update=0.7)
    single = stack_cells([hold_(GRU(2, 3).double(), update=0.7) for _ in range(4)])
    for name, parameter in single.named_parameters():
        assert torch.equal(ensemble.get_parameter(name), parameter)


def test_a_users_module_is_held_by_its_own_declaration() -> None:
    """hold_ takes the bare module too, and sets the rows that it declares."""
    module = hold_(MinimalGatedUnit(2, 3).double(), update=0.9, candidate_gain=1.0)
    x, h = torch.randn(5, 2).double(), torch.randn(5, 3).double()
    value = module.gate_values(x, h)["update"]
    torch.testing.assert_close(value, torch.full_like(value, 0.9), rtol=1e-15, atol=0)
    recurrent = module.candidate.weight[:, 2:]
    torch.testing.assert_close(recurrent @ recurrent.T, torch.eye(3).double())
    assert not torch.any(module.candidate.weight[:, :2])


def test_whole_numbers_among_the_parameters_are_left_alone() -> None:
    """A parameter of integers (an order of units, say) is no weight to be zeroed."""
    module = MinimalGatedUnit(2, 3)
    module.order = nn.Parameter(torch.arange(3), requires_grad=False)
    hold_(module, update=0.9)
    assert module.order.tolist() == [0, 1, 2]


# edges


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_value_is_held_to_the_dtypes_precision(dtype: torch.dtype) -> None:
    """In half precision 0.9 is held to a few units of its round-off."""
    cell = hold_(LSTM(2, 3).to(dtype), forget=0.9)
    value = cell.step(*arguments(cell))["forget"]
    assert (value.double() - 0.9).abs().max() < 4 * torch.finfo(dtype).eps


def test_a_number_of_numpy_is_a_number() -> None:
    """np.float32(0.5) holds a gate as 0.5 does."""
    cell = hold_(LSTM(2, 3), forget=np.float64(0.25))
    assert cell.step(*arguments(cell))["forget"][0, 0].item() == pytest.approx(0.25, rel=1e-6)


@pytest.mark.usefixtures("unchecked_annotations")
def test_other_kinds_of_numbers_are_numbers_too() -> None:
    """A float32 of NumPy is one; True is not."""
    hold_(LSTM(2, 3), forget=np.float32(0.25))
    with pytest.raises(GateValueError, match="strictly between 0 and 1"):
        hold_(LSTM(2, 3), forget=True)


# words


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 1.5, math.nan, math.inf])
def test_no_sigmoid_reaches_its_ends(value: float) -> None:
    """0 and 1, and all beyond, are refused with the reason and the cure."""
    with pytest.raises(GateValueError, match=rf"(?s)'forget'.*never reaches.*got {value}.*0\.999"):
        hold_(LSTM(2, 3), forget=value)


@pytest.mark.usefixtures("unchecked_annotations")
@pytest.mark.parametrize("value", ["0.5", None, [0.5]])
def test_what_is_no_number_is_refused(value: object) -> None:
    """A text or a list is no gate value."""
    with pytest.raises(GateValueError, match="strictly between 0 and 1"):
        hold_(LSTM(2, 3), forget=value)


@pytest.mark.parametrize(("dtype", "value"), [(torch.float16, 0.9999), (torch.bfloat16, 0.999)])
def test_a_value_that_the_dtype_rounds_away_is_refused(dtype: torch.dtype, value: float) -> None:
    """0.9999 is 1 in half precision, so the gate would not forget at all."""
    with pytest.raises(
        GateValueError, match=rf"cannot be held at {value} in {dtype}.*rounds it to 1"
    ):
        hold_(LSTM(2, 3).to(dtype), forget=value)


@pytest.mark.parametrize("option", ["candidate_gain", "gate_weights"])
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_scales_are_finite_and_not_negative(option: str, value: float) -> None:
    """The message names the option."""
    with pytest.raises(GateValueError, match=f"{option}.*finite number of 0 or more; got {value}"):
        hold_(LSTM(2, 3), **{option: value})


def test_a_misspelt_gate_gets_the_right_one_offered() -> None:
    """The words name the cell, the wrong name and the nearest right one."""
    with pytest.raises(
        UnknownNameError, match=r"lstm has no gate 'forgett'.*Did you mean 'forget'"
    ):
        hold_(LSTM(2, 3), forgett=0.5)
    with pytest.raises(UnknownNameError, match=r"rnn has no gate 'forget'.*declares no gates"):
        hold_(RNN(2, 3), forget=0.5)
    with pytest.raises(UnknownNameError, match="no gate 'candidate'"):
        hold_(LSTM(2, 3), candidate=0.5)


def test_without_a_bias_nothing_can_hold_a_gate() -> None:
    """bias=False leaves no place for the logit."""
    with pytest.raises(GateValueError, match=r"'update' has no bias.*bias=False"):
        hold_(GRU(2, 3, bias=False), update=0.5)


def test_a_gain_needs_to_know_the_recurrent_block() -> None:
    """A user's candidate without `recurrent` cannot be given a matrix."""
    module = MinimalGatedUnit(2, 3)
    module.gates = module.gates[:1]
    with pytest.raises(
        GateValueError, match=r"does not say which weights.*'recurrent'.*candidate_gain 0"
    ):
        hold_(module, update=0.5, candidate_gain=1.0)


def test_a_wrong_declaration_is_told_before_anything_is_zeroed() -> None:
    """Whatever hold_ refuses, the cell is as it was."""
    module = MinimalGatedUnit(2, 3)
    module.gates = [{"name": "update", "role": "keep", "bias": "nowhere"}]
    cells: list[tuple[nn.Module, dict[str, float], type[Exception]]] = [
        (module, {"update": 0.5}, CellLoadError),
        (LSTM(2, 3), {"forget": 1.0}, GateValueError),
        (LSTM(2, 3), {"forget": 0.5, "nothing": 0.5}, UnknownNameError),
        (LSTM(2, 3).half(), {"forget": 0.99999}, GateValueError),
        (GRU(2, 3, bias=False), {"update": 0.5}, GateValueError),
        (LSTM(2, 3), {"forget": 0.5, "candidate_gain": -1.0}, GateValueError),
    ]
    for cell, options, error in cells:
        before = copy.deepcopy(cell.state_dict())
        with pytest.raises(error):
            hold_(cell, **options)
        assert all(torch.equal(before[name], value) for name, value in cell.state_dict().items())
