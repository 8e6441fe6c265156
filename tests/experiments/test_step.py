"""Steps worked by hand: the textbook's numbers, the NumPy cells, and what is refused."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradflow.cells.numpy_cells import NumpyGRU, NumpyLSTM
from gradflow.errors import GateValueError, SettingError, UnknownNameError
from gradflow.experiments.step import work_gru, work_lstm
from gradflow.records.step import StepResult

GATE = st.floats(0.01, 0.99)
CANDIDATE = st.floats(-0.99, 0.99)
STATE = st.floats(-3, 3)


def logit(value: float) -> float:
    """Return the pre-activation at which a sigmoid has this value."""
    return math.log(value / (1 - value))


# closed form


def test_an_lstm_step_keeps_writes_and_shows() -> None:
    """c = 0.8 * 2 + 0.25 * (-0.4) = 1.5, and h = 0.5 tanh(1.5) = 0.45257."""
    result = work_lstm(2, 0.8, input_gate=0.25, candidate=-0.4, output_gate=0.5)
    after = result.steps[0].after
    assert after["c"] == pytest.approx(1.5, abs=1e-15)
    assert after["h"] == pytest.approx(0.45257, abs=5e-6)
    assert result.steps[0].equations[0].numbers == "0.8 * 2 + 0.25 * (-0.4)"


def test_a_gru_step_mixes_old_and_new() -> None:
    """h = 0.75 * 2 + 0.25 * (-0.4) = 1.4 where z keeps."""
    result = work_gru(2, 0.75, candidate=-0.4)
    assert result.steps[0].after["h"] == pytest.approx(1.4, abs=1e-15)
    assert result.steps[0].equations[0].numbers == "0.75 * 2 + (1 - 0.75) * (-0.4)"


def test_three_forget_gates_multiply() -> None:
    """Gates 0.9, 0.8 and 0.5 leave 0.36 of the first cell state."""
    result = work_lstm(1, [0.9, 0.8, 0.5])
    assert len(result.steps) == 3
    assert result.direct.value == pytest.approx(0.36, abs=1e-15)
    assert (result.direct.symbols, result.direct.numbers) == ("f_1 * f_2 * f_3", "0.9 * 0.8 * 0.5")
    assert result.passed


def test_swapping_z_swaps_the_convention() -> None:
    """z = 0.75 where z keeps is z = 0.25 where 1 - z keeps: same state, same coefficient."""
    keep = work_gru(2, [0.75, 0.6], candidate=[-0.4, 0.3])
    write = work_gru(2, [0.25, 0.4], candidate=[-0.4, 0.3], convention="write")
    assert keep.steps[-1].after["h"] == pytest.approx(write.steps[-1].after["h"], abs=1e-15)
    assert keep.direct.value == pytest.approx(write.direct.value, abs=1e-15)
    assert "z' = 1 - z = 0.25, 0.4" in keep.explanations[-1]
    assert write.direct.symbols == "(1 - z_1) * (1 - z_2)"


# reference


@given(STATE, GATE, GATE, CANDIDATE, GATE)
def test_an_lstm_step_equals_the_numpy_cell(
    c: float, forget: float, write: float, candidate: float, output: float
) -> None:
    """A NumPy LSTM driven to the same gates takes the same step, with the same derivatives."""
    cell = NumpyLSTM(np.eye(4), np.zeros((4, 1)))
    drive = [logit(write), logit(forget), math.atanh(candidate), logit(output)]
    trace = cell.forward([[drive]], (np.zeros((1, 1)), np.full((1, 1), c)))
    worked = work_lstm(c, forget, input_gate=write, candidate=candidate, output_gate=output).steps[
        0
    ]
    for part in ("h", "c"):
        assert worked.after[part] == pytest.approx(trace.part(part).item(), abs=1e-13)
    gradients = cell.backward(trace, final_gradient=(np.zeros((1, 1)), np.ones((1, 1))))
    assert worked.direct == pytest.approx(gradients.initial_state[1].item(), abs=1e-13)
    deltas = [gradients.deltas[gate].item() for gate in ("forget", "input", "candidate")]
    assert [term.value for term in worked.left_out] == pytest.approx(deltas, abs=1e-13)


@given(STATE, GATE, CANDIDATE)
def test_a_gru_step_equals_the_numpy_cell(h: float, update: float, candidate: float) -> None:
    """A NumPy GRU driven to the same gate takes the same step, with the same derivatives."""
    cell = NumpyGRU(np.eye(3), np.zeros((3, 1)))
    drive = [0.0, logit(update), math.atanh(candidate)]
    trace = cell.forward([[drive]], (np.full((1, 1), h),))
    worked = work_gru(h, update, candidate=candidate).steps[0]
    assert worked.after["h"] == pytest.approx(trace.hidden.item(), abs=1e-13)
    gradients = cell.backward(trace, final_gradient=(np.ones((1, 1)),))
    assert worked.direct == pytest.approx(gradients.initial_state[0].item(), abs=1e-13)
    deltas = [gradients.deltas[gate].item() for gate in ("update", "candidate")]
    assert [term.value for term in worked.left_out] == pytest.approx(deltas, abs=1e-13)


@given(STATE, st.lists(st.tuples(GATE, CANDIDATE), min_size=1, max_size=5))
def test_every_equation_computes_to_its_value(
    c: float, given_steps: list[tuple[float, float]]
) -> None:
    """The numbers as printed, read as arithmetic, give the value printed after them."""
    gates, candidates = zip(*given_steps, strict=True)
    results = [work_lstm(c, gates, candidate=candidates)]
    results += [work_gru(c, gates, candidate=candidates, convention=k) for k in ("keep", "write")]
    for result in results:
        for step in result.steps:
            for equation in (*step.equations, *step.left_out):
                arithmetic = equation.numbers.replace("^", "**")
                value = eval(arithmetic, {"tanh": math.tanh})
                # Six digits are printed of each number, and none is larger than about 10.
                assert value == pytest.approx(equation.value, abs=1e-4)


# edges


def test_a_value_given_once_serves_all_steps() -> None:
    """One input gate beside three forget gates is used three times; unset, it is 1 - forget."""
    once = work_lstm(1, [0.9, 0.8, 0.5], input_gate=0.25)
    assert [step.gates["input"] for step in once.steps] == [0.25, 0.25, 0.25]
    coupled = work_lstm(1, [0.9, 0.8, 0.5])
    assert [step.gates["input"] for step in coupled.steps] == pytest.approx([0.1, 0.2, 0.5])


@pytest.mark.parametrize(("z", "expected"), [(1.0, 2.0), (0.0, -0.4)])
def test_the_ends_of_a_gate_copy_or_replace(z: float, expected: float) -> None:
    """z = 1 copies the old state and z = 0 replaces it: limits that paper arithmetic may use."""
    assert work_gru(2, z, candidate=-0.4).steps[0].after["h"] == expected


def test_a_coefficient_may_underflow_in_long_runs() -> None:
    """A gate of 0.1 over 400 steps leaves nothing in float64, and the check still holds."""
    result = work_lstm(1e300, [0.1] * 400, candidate=1.0)
    assert result.direct.value == 0
    assert result.passed


def test_a_result_survives_its_own_json() -> None:
    """A stored result read back is the result."""
    result = work_gru(2, [0.75, 0.5], candidate=-0.4, convention="write")
    assert StepResult.from_json(json.loads(json.dumps(result.to_json()))) == result


# words


def test_impossible_values_are_refused_in_words() -> None:
    """A value that no sigmoid or tanh has, or lists that do not match, are named."""
    with pytest.raises(GateValueError, match=r"forget_gate must lie between 0 and 1.*got 1.2"):
        work_lstm(1, 1.2)
    with pytest.raises(GateValueError, match=r"candidate must lie between -1 and 1.*tanh"):
        work_gru(1, 0.5, candidate=-2)
    with pytest.raises(GateValueError, match="got nan"):
        work_gru(1, math.nan)
    with pytest.raises(SettingError, match="candidate must have one value, or one per step"):
        work_lstm(1, [0.1, 0.2, 0.3], candidate=[0.5, 0.5])
    with pytest.raises(SettingError, match="h must be a finite number; got inf"):
        work_gru(math.inf, 0.5)
    with pytest.raises(SettingError, match="update_gate must have at least one value"):
        work_gru(1, [])
    with pytest.raises(UnknownNameError, match="Did you mean 'keep'"):
        work_gru(1, 0.5, convention="keeps")
