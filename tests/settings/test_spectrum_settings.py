"""What can be asked of `gradflow spectrum`, and what cannot."""

from __future__ import annotations

import json

import pytest

from gradflow.errors import GateValueError, RequestError, SettingError, UnknownNameError
from gradflow.settings import SpectrumSettings


def test_the_settings_of_a_result_make_the_run_again() -> None:
    """Through strict JSON and back, unset ones included."""
    asked = SpectrumSettings(cell="rnn", gain="3", count="2", data="x.npy")
    assert SpectrumSettings(**json.loads(json.dumps(asked.to_json()))) == asked
    assert asked.steps is None


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"gain": -1}, GateValueError, "must be at least 0"),
        ({"gain": "nan"}, GateValueError, "finite number"),
        ({"warmup": -1}, SettingError, "'warmup' must be at least 0; got -1"),
        ({"warmup": 1.5}, SettingError, "must be a whole number; got 1.5"),
        ({"steps": 0}, SettingError, "'steps' must be at least 1"),
        ({"count": 0}, SettingError, "'count' must be at least 1"),
        ({"networks": 0}, SettingError, "'networks' must be at least 1"),
        ({"input": "noise"}, UnknownNameError, "Known: random, zero"),
        ({"cell": 3}, SettingError, r"must be a name \(text\)"),
        ({"counts": 3}, UnknownNameError, "Did you mean 'count'"),
    ],
)
def test_a_wrong_setting_is_one_error(
    settings: dict[str, object], error: type[RequestError], words: str
) -> None:
    """The rule, what came, the cure."""
    with pytest.raises(error, match=words):
        SpectrumSettings(**settings)


def test_a_default_may_be_given_as_the_help_shows_it() -> None:
    """`--count all --data none` is what is asked for without them, from flags and from TOML."""
    assert SpectrumSettings(count="all", data="none") == SpectrumSettings()
    with pytest.raises(SettingError, match="whole number"):
        SpectrumSettings(warmup="none")  # whose default is a number
