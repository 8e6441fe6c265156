"""Whose fault an inf or nan is: the first of them, in the order of the backward pass, and why."""

from __future__ import annotations

import math

import pytest
import torch

from gradflow.cells import ForeignCell
from gradflow.engine.finiteness.find_fault import Finding, find_fault
from gradflow.engine.saturation.measure import Feed, measure
from gradflow.engine.saturation.subjects import Subject, user_subject
from tests.data import naive_sigmoid_cell
from tests.engine.saturating import built_in, feed_of, hand_written, loaded
from tests.field_cases import field_case

CASE = field_case("naive_sigmoid")
FIRST_ROWS = "lin.bias[0:4]"


def the_case(dtype: torch.dtype, *, stable: bool = False) -> tuple[Subject, Feed]:
    """Return the cell of the field case and its five steps."""
    make = naive_sigmoid_cell.make_stable_cell if stable else naive_sigmoid_cell.make_cell
    cell = ForeignCell(make().to(dtype))
    xs = torch.tensor(CASE.arrays["inputs"]).to(dtype)
    return user_subject("case", cell, cell), Feed(xs, cell.initial_state(xs.shape[1]))


def blamed(subject: Subject, feed: Feed) -> Finding:
    """Return what is found of a run that is not finite."""
    assert not measure(subject, feed).all_finite
    finding = find_fault(subject, feed)
    assert finding is not None
    return finding


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_the_first_nan_of_the_field_case_is_the_input_gate_of_unit_0_in_the_last_step(
    dtype: torch.dtype,
):
    """Not exploding gradients: the derivative of a hand-written sigmoid, e^-95 in truth."""
    columns = CASE.expected["float32_naive"]["nan_columns_per_step"]
    assert columns[-1] == [0]
    finding = blamed(*the_case(dtype))
    first = finding.first
    assert finding.verdict == "fault"
    assert (first.gate, first.unit, first.step) == ("input", 0, len(columns))
    assert (first.parameter, first.row, first.operation) == ("lin.bias", 0, "exp")
    assert (first.during, first.value, first.fits) == ("backward", "nan", True)
    # the gradient is the slope of the sigmoid, 5.5e-42, times what comes from above, below 1
    assert first.true_log10 == pytest.approx(math.log10(5.52e-42) - 3, abs=3)
    # 10^-44 is subnormal in float32; the narrower dtypes have no such number but 0
    size = (
        "fits float32"
        if dtype == torch.float32
        else f"rounds to 0 in {dtype}".replace("torch.", "")
    )
    for word in ("gate input, unit 0", "step 5", "exp", size):
        assert word in finding.reason


@pytest.mark.parametrize(("dtype", "stable"), [(torch.float32, True), (torch.float64, False)])
def test_torch_sigmoid_and_float64_have_no_nan_in_the_field_case(dtype: torch.dtype, stable: bool):
    """The same weights and inputs are finite there, and nothing is found."""
    subject, feed = the_case(dtype, stable=stable)
    assert measure(subject, feed).all_finite
    assert find_fault(subject, feed) is None


def test_the_true_gradient_of_the_field_case_is_that_of_float64():
    """The size that is told for a float32 nan is the gradient that float64 finds."""
    subject, feed = the_case(torch.float64)
    states = [subject.cell.initial_state(2)]
    rows: list[torch.Tensor] = []
    handle = subject.module.get_submodule("lin").register_forward_hook(
        lambda _module, _inputs, output: rows.append(output)
    )
    for x in feed.xs:
        states.append(subject.step(x, states[-1])[0])
    handle.remove()
    mean = torch.stack([state[0] for state in states[1:]]).mean()
    (gradient,) = torch.autograd.grad(mean, rows[-1])
    first = blamed(*the_case(torch.float32)).first
    sizes = gradient[:, 0].abs().log10().tolist()
    # float32's rounding of the weights moves the pre-activation -95 by 1e-6
    assert any(first.true_log10 == pytest.approx(size, abs=1e-5) for size in sizes)


@pytest.mark.parametrize(
    ("name", "place", "value", "during", "operation"),
    [
        ("naive_sigmoid", FIRST_ROWS, -1e2, "backward", "exp"),
        ("two_sided_sigmoid", FIRST_ROWS, -1e2, "backward", "exp"),
        ("two_sided_sigmoid", FIRST_ROWS, 1e2, "backward", "div"),
        ("own_backward", FIRST_ROWS, -1e2, "backward", "own_backward"),
        ("spelled_tanh", "lin.bias[8:12]", 1e2, "backward", "mul"),
        ("separate_layers", "wz.bias", -1e2, "backward", "exp"),
        ("in_place", "lin.bias[0:4]", -1e2, "backward", "exp"),
    ],
)
def test_a_cell_that_overflows_inside_is_at_fault(
    name: str, place: str, value: float, during: str, operation: str
):
    """Hand-written squashing functions of every make: the true value fits, the cell's does not."""
    subject = hand_written(name)
    finding = blamed(subject, loaded(subject, place, value))
    assert finding.verdict == "fault", finding.reason
    assert (finding.first.during, finding.first.operation) == (during, operation)
    assert finding.first.step == 3  # the backward pass begins with the last step


@pytest.mark.parametrize("value", [-1e4, -torch.finfo(torch.float64).max])
def test_float64_hides_a_naive_sigmoid_until_710_and_has_no_larger_twin(value: float):
    """At -1e4 and at the largest number itself the fault shows, and the truth is still known."""
    subject = hand_written("naive_sigmoid", torch.float64)
    assert measure(subject, loaded(subject, FIRST_ROWS, -1e2)).all_finite
    finding = blamed(subject, loaded(subject, FIRST_ROWS, value))
    assert finding.verdict == "fault"
    assert finding.first.true_log10 == pytest.approx(value / math.log(10), rel=1e-2)


def test_a_nan_of_the_forward_pass_is_told_with_its_state_and_step():
    """(e^v - e^-v) / (e^v + e^-v) at 100: h is nan from step 1 on, and is 0.something in truth."""
    subject = hand_written("spelled_tanh")
    finding = blamed(subject, loaded(subject, "lin.bias[8:12]", 100.0))
    assert "h (unit 0) is nan at step 1" in finding.reason
    assert "made by exp" in finding.reason


def test_a_variance_that_overflows_is_the_cells_fault():
    """Layer normalisation of float64's largest number is some 1, and torch gives nan."""
    subject = hand_written("layer_norm", torch.float64)
    finding = blamed(subject, loaded(subject, "lin.bias", torch.finfo(torch.float64).max))
    assert finding.verdict == "fault"
    assert finding.first.fits


def test_a_state_that_does_not_fit_is_an_honest_overflow():
    """c = e^100 is no float32, whatever is done: the cell is not blamed, nor for h after it."""
    subject = hand_written("exponential_gate")
    finding = blamed(subject, loaded(subject, FIRST_ROWS, 100.0))
    assert finding.verdict == "overflow"
    assert "c (unit 0) is inf at step 1" in finding.reason
    assert "10^43" in finding.reason


@pytest.mark.parametrize("by", ["gradflow", "torch"])
def test_a_relu_rnn_grows_beyond_the_largest_number_honestly(by: str):
    """h = max + W h with W h > 0: the sum is no float32."""
    subject = built_in("rnn-relu", torch.float32, by=by)
    finding = blamed(subject, loaded(subject, "candidate", torch.finfo(torch.float32).max))
    assert finding.verdict == "overflow"
    assert "h (unit 0) is inf at step 2, made by add; its true value, 10^38" in finding.reason
    assert "does not fit float32 either" in finding.reason


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_torchs_gru_overflows_honestly_on_a_state_of_the_largest_number(dtype: torch.dtype):
    """U h is beyond the dtype, so that nan gradients follow: the product is named, not the cell."""
    subject = built_in("gru", dtype, by="torch")
    with torch.no_grad():  # the candidate's product adds four largest numbers up
        subject.parameters["weight_hh"][8:] = 1.0
    feed = feed_of(subject)
    huge = torch.full_like(feed.start[0], -torch.finfo(dtype).max)
    finding = blamed(subject, Feed(feed.xs, (huge,)))
    assert finding.verdict == "overflow"
    assert "matrix product of step 1" in finding.reason


def test_rows_that_no_gate_claims_are_told_by_parameter():
    """Without a declaration the row of the weight says where to look."""
    subject = hand_written("naive_sigmoid")
    first = blamed(subject, loaded(subject, "lin.bias[4:8]", -1e2)).first
    assert first.gate is None
    assert (first.parameter, first.row, first.unit) == ("lin.bias", 4, 4)
