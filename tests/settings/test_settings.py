"""What can be asked: each wrong request gets the rule, what came and the cure."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradflow.errors import GateValueError, RequestError, SettingError, UnknownNameError
from gradflow.settings import DecaySettings, SaturateSettings


def test_comma_lists_and_repeated_values_are_one_list():
    """`--gate 0.1,0.5 --gate 0.9 --gate 0.1` asks for three values, in the order given."""
    assert DecaySettings(gate=["0.1,0.5", "0.9", "0.10"]).gate == (0.1, 0.5, 0.9)
    assert DecaySettings(cell="gru, lstm,gru").cell == ("gru", "lstm")
    assert DecaySettings(gate=0.3).gate == (0.3,)


@given(st.floats(min_value=0, max_value=1, exclude_min=True, exclude_max=True))
def test_every_number_strictly_between_0_and_1_is_a_gate_value(value: float):
    """A gate value is read as exactly the number that was written."""
    assert DecaySettings(gate=repr(value), reset_gate=value).gate == (value,)


@pytest.mark.parametrize("field", ["gate", "input_gate", "output_gate", "reset_gate"])
@pytest.mark.parametrize("value", ["0", "1", "1.0", "-0.5", "nan", "inf", "abc", "", True, None])
def test_no_gate_can_be_held_at_the_ends_or_outside(field: str, value: object):
    """A sigmoid lies strictly between 0 and 1, so no gate is held at 0, at 1 or beyond."""
    with pytest.raises(GateValueError, match=f"'{field}'"):
        DecaySettings(**{field: value})


def test_an_rnn_alone_takes_recurrent_gains_of_1_and_more():
    """An RNN has no gate: its number is a gain, at least 0, which may well make the state grow."""
    assert DecaySettings(cell="rnn", gate="0,1,1.5").gate == (0.0, 1.0, 1.5)
    with pytest.raises(GateValueError, match="at least 0"):
        DecaySettings(cell="rnn", gate="-1")
    with pytest.raises(GateValueError, match="for --cell rnn alone"):
        DecaySettings(cell="rnn,gru", gate="1.0")


def test_the_input_gate_is_coupled_or_a_value():
    """The input gate is 1 - forget gate unless it is given a value of its own."""
    assert DecaySettings().input_gate == "coupled"
    assert DecaySettings(input_gate="Coupled").input_gate == "coupled"
    assert DecaySettings(input_gate="0.3").input_gate == 0.3
    with pytest.raises(GateValueError, match=r"got 2.0\. Use 0.999 .* Or say 'coupled'"):
        DecaySettings(input_gate="2")


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"gates": 0.5}, UnknownNameError, "'gates' is no known setting. Did you mean 'gate'?"),
        ({"norm": "frob"}, UnknownNameError, "got 'frob'. Did you mean 'frobenius'?"),
        ({"dtype": "float23"}, UnknownNameError, "Did you mean 'float32'? Known: float32, float64"),
        ({"steps": "-3"}, SettingError, "must be at least 1; got -3. It is the number of time"),
        ({"steps": "ten"}, SettingError, "must be a whole number; got 'ten'"),
        ({"steps": 1.5}, SettingError, "must be a whole number; got 1.5"),
        ({"steps": True}, SettingError, "must be a number; got true"),
        ({"hidden": 0}, SettingError, "'hidden' must be at least 1; got 0"),
        ({"seed": -1}, SettingError, "'seed' must be at least 0; got -1"),
        ({"seed": 2**63}, SettingError, "'seed' must be less than 9223372036854775808"),
        ({"seed": "1" * 5000}, SettingError, "'seed' must be a whole number"),
        ({"cell": "lstm,,gru"}, SettingError, "none left empty; got 'lstm,,gru'"),
        ({"cell": []}, SettingError, "must name at least one value"),
        ({"candidate_gain": "-1"}, GateValueError, "must be at least 0"),
        ({"candidate_gain": "nan"}, GateValueError, "finite number"),
        ({"gate_weights": [1]}, GateValueError, "must be a number"),
        ({"gate": {"value": 1}}, GateValueError, "must be a number"),
    ],
)
def test_a_wrong_setting_is_one_error_that_says_what_to_do(
    settings: dict[str, object], error: type[RequestError], words: str
):
    """The rule, what came and the cure stand in one error of the class of the situation."""
    with pytest.raises(error) as caught:
        DecaySettings(**settings)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_several_wrong_settings_are_told_at_once():
    """Each wrong key has its line, three at most, so that they are mended together."""
    with pytest.raises(SettingError) as caught:
        DecaySettings(steps=0, hidden=0, seed=-1, points=0)
    lines = str(caught.value).splitlines()
    assert [line.split()[0] for line in lines] == ["'steps'", "'hidden'", "'seed'"]


def test_a_long_value_is_cut_in_the_message():
    """A message stays readable whatever came."""
    with pytest.raises(UnknownNameError) as caught:
        DecaySettings(norm="x" * 10_000)
    assert len(str(caught.value)) < 200


def test_settings_are_frozen():
    """Settings never change after they were checked."""
    with pytest.raises(ValueError, match="frozen"):
        DecaySettings().steps = 3


@pytest.mark.parametrize("model", [DecaySettings, SaturateSettings])
def test_settings_survive_json(model: type[DecaySettings]):
    """The `config` object of a result makes the same settings again, and is strict JSON."""
    text = json.dumps(model().to_json(), allow_nan=False)
    assert model(**json.loads(text)) == model()


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("100", "1e2"),
        ("1e2", "1e2"),
        (100.0, "1e2"),
        (1e8, "1e8"),
        ("MAX", "max"),
        (0.25, "2.5e-1"),
    ],
)
def test_a_magnitude_has_one_name(given: object, name: str):
    """100, 1e2 and 100.0 are one magnitude, so they are one run."""
    assert SaturateSettings(magnitude=given).magnitude == (name,)


@pytest.mark.parametrize("given", ["0", "-1", "inf", "1e400", "nan", "big", True])
def test_a_magnitude_is_positive_and_finite(given: object):
    """Both signs of a magnitude are tried anyway, and infinity is no number to put in."""
    with pytest.raises(SettingError, match="'magnitude' must be"):
        SaturateSettings(magnitude=given)
