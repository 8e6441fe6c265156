"""What can be asked of step, params and inits."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradflow.errors import GateValueError, RequestError, SettingError
from gradflow.settings import InitsSettings, ParamsSettings, StepSettings
from gradflow.settings.schemes import SCHEMES, read_scheme, scheme_name


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_a_sequence_keeps_every_value_in_order(values: list[float]):
    """Each value is a step: none is dropped for coming twice, and both ends are allowed."""
    text = ",".join(map(repr, values))
    assert StepSettings(forget_gate=text).forget_gate == tuple(values)


def test_each_cell_has_its_own_numbers():
    """What belongs to the other cell is absent, what is not given is the cell's own."""
    lstm, gru = StepSettings(), StepSettings(cell="gru")
    assert (lstm.c, lstm.forget_gate, lstm.input_gate) == (1.0, (0.9,), "coupled")
    assert (lstm.h, lstm.update_gate, lstm.convention) == (None, None, None)
    assert (gru.h, gru.update_gate, gru.convention) == (1.0, (0.9,), "keep")
    assert (gru.c, gru.forget_gate, gru.input_gate, gru.output_gate) == (None, None, None, None)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"c": float("nan")}, "must be a finite number"),
        ({"cell": "gru", "c": 1}, "'c' is not for a GRU, because it has no cell state"),
        ({"cell": "gru", "output_gate": 0.5}, "it shows all of its state"),
        ({"input_gate": "open"}, "'input_gate' must be a number"),
        ({"candidate": []}, "at least one value"),
        ({"forget_gate": [0.1, 0.2], "output_gate": [0.1] * 3}, "like --forget-gate, which has 2"),
    ],
)
def test_a_step_that_cannot_be_is_refused(settings: dict[str, object], words: str):
    """The rule, and why the cell has no such number."""
    with pytest.raises(RequestError) as caught:
        StepSettings(**settings)
    assert words in str(caught.value)


@pytest.mark.parametrize("given", ["lstm:128", " lstm:128 ", "71680", 71680, "my_cell-2:7"])
def test_a_match_is_a_cell_and_width_or_a_number(given: object):
    """Text and numbers alike; the text is kept as it is read."""
    assert ParamsSettings(match=given).match == str(given).strip()


@pytest.mark.parametrize(
    "given", ["lstm", "lstm:", ":5", "0", "lstm:0", "-3", "1.5", True, "9" * 101]
)
def test_another_match_is_refused_with_an_example(given: object):
    """The message shows both forms."""
    with pytest.raises(SettingError, match=r"lstm:128|must be a number"):
        ParamsSettings(match=given)


@pytest.mark.parametrize("name", SCHEMES)
def test_every_scheme_has_one_name(name: str):
    """Written with its usual number or without, it is the same scheme and the same run."""
    usual = SCHEMES[name]
    one = scheme_name(read_scheme(name))
    assert scheme_name(read_scheme(one)) == one
    if usual is not None:
        assert InitsSettings(init=f"{name}:{usual:.3f}").init == (one,)


def test_schemes_that_come_twice_count_once():
    """chrono and chrono:100.0 are one."""
    assert InitsSettings(init="chrono,chrono:100.0,he").init == ("chrono:100", "he")
    # Python writes 1e+20, and a plus joins two schemes: the name must read as itself again
    (far,) = InitsSettings(init="chrono:1e20").init
    assert InitsSettings(init=far).init == (far,)


@pytest.mark.parametrize("threshold", ["0", "1", "-1", "nan", True])
def test_the_threshold_lies_between_zero_and_one(threshold: object):
    """A norm starts at 1; nothing is gone at 1, and zero is never reached."""
    with pytest.raises((SettingError, GateValueError)):
        InitsSettings(threshold=threshold)


@pytest.mark.parametrize("model", [StepSettings, ParamsSettings, InitsSettings])
def test_settings_survive_json(model: type[StepSettings]):
    """The `config` object of a result makes the same settings again, and is strict JSON."""
    text = json.dumps(model().to_json(), allow_nan=False)
    assert model(**json.loads(text)) == model()
