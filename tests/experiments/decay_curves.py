"""Small decay runs for tests, and the curve one means."""

from __future__ import annotations

from typing import Any

from gradflow.experiments.decay import run_decay
from gradflow.records import DecayCurve, DecayResult
from gradflow.settings import DecaySettings

SMALL: dict[str, Any] = {"hidden": 6, "steps": 40}


def run(**settings: Any) -> DecayResult:
    """Run a small decay experiment; what is not given is small or the default."""
    return run_decay(DecaySettings(**{**SMALL, **settings}))


def curve(result: DecayResult, *, path: str = "full", **wanted: Any) -> DecayCurve:
    """Return the one curve whose fields have these values."""
    fitting = [
        entry
        for entry in result.curves
        if entry.path == path and all(getattr(entry, key) == value for key, value in wanted.items())
    ]
    assert len(fitting) == 1, f"{len(fitting)} curves have {wanted}"
    return fitting[0]


def one(**settings: Any) -> DecayCurve:
    """Run an experiment of one subject and return its full path."""
    return curve(run(**settings))
