"""The ways to measure a decay, and a run that is stopped on the way."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gradflow.config import DecaySettings
from gradflow.errors import Interrupted, UnknownNameError
from gradflow.experiments import decay
from gradflow.experiments.decay import run_decay
from gradflow.experiments.decay_curves import autograd_reach
from gradflow.records.decay import DecayCurve, DecayResult
from tests.cases import assert_same_log_norm

SMALL = {"cell": ("lstm",), "gate": (0.5,), "candidate_gain": (1.0,), "hidden": 6, "steps": 40}


def full(result: DecayResult) -> DecayCurve:
    """Return the curve of the exact Jacobian."""
    (curve,) = (curve for curve in result.curves if curve.path == "full")
    return curve


@pytest.mark.parametrize("method", ["dense", "generic", "jump", "krylov"])
def test_every_method_measures_the_same_decay(method: str) -> None:
    """The curve does not depend on the way that it was measured."""
    points = 5
    auto = full(run_decay(DecaySettings(**SMALL, points=points)))
    result = run_decay(DecaySettings(**SMALL, points=points, method=method))
    found = full(result)
    assert result.passed
    assert found.method == ("dense" if method == "jump" else method)
    tolerance = 1e-6 if method == "krylov" else 1e-12
    assert_same_log_norm(found.log10_norm, auto.log10_norm, tolerance=tolerance)


def test_an_estimate_carries_its_interval() -> None:
    """By vectors a curve has few points by itself, and log10 of where each interval ends."""
    curve = full(run_decay(DecaySettings(**SMALL, method="krylov")))
    assert list(curve.steps) == [1, 2, 3, 5, 8, 14, 24, 40]
    assert curve.log10_norm_upper is not None
    assert (curve.log10_norm_upper >= curve.log10_norm).all()
    assert curve.autograd is not None
    assert curve.autograd.tolerance == 1e-6
    read = DecayCurve.from_json(curve.to_json())
    np.testing.assert_array_equal(read.log10_norm_upper, curve.log10_norm_upper)


def test_a_leap_is_told() -> None:
    """The step at which the state came back is in the record."""
    settings = DecaySettings(**{**SMALL, "steps": 30_000}, points=5, start="zero")
    curve = full(run_decay(settings))
    assert curve.method == "jump"
    assert curve.settled_step == 511
    assert DecayCurve.from_json(curve.to_json()).settled_step == 511


def test_a_method_that_does_not_apply_is_a_wrong_request() -> None:
    """A live candidate's units are not apart."""
    with pytest.raises(UnknownNameError, match="'diagonal' needs a cell whose recurrent"):
        run_decay(DecaySettings(**SMALL, method="diagonal"))


def test_autograd_reads_what_its_graph_has_room_for() -> None:
    """A wide cell is checked at its first steps alone: each step keeps many copies of the state."""
    assert autograd_reach(128) == 100
    assert 1 <= autograd_reach(1024) < 100
    assert autograd_reach(8192) == 1


def test_a_run_that_is_stopped_keeps_its_curves() -> None:
    """The curves measured before, and the part of the one that was stopped, are the result."""

    def stop(what: str, done: int, total: int) -> None:
        if what == "gru, candidate gain 1" and done > 600:
            raise KeyboardInterrupt

    settings = DecaySettings(
        cell=("lstm", "gru"), gate=(0.5,), hidden=4, steps=3000, method="dense", points=40
    )
    with pytest.raises(Interrupted, match=r"gru, candidate gain 1: .*of 3000") as caught:
        run_decay(settings, progress=stop)
    result = caught.value.partial
    assert isinstance(result, DecayResult)
    assert "of 3000" in result.environment["interrupted"]
    ends = {(c.cell, c.candidate_gain): c.steps[-1] for c in result.curves if c.path == "full"}
    assert ends[("lstm", 0.0)] == ends[("lstm", 1.0)] == ends[("gru", 0.0)] == 3000
    assert 512 < ends[("gru", 1.0)] <= 1024
    whole = full(
        run_decay(settings.model_copy(update={"cell": ("gru",), "candidate_gain": (1.0,)}))
    )
    part = result.curves[-2]
    assert (part.cell, part.path) == ("gru", "full")
    np.testing.assert_array_equal(part.log10_norm, whole.log10_norm[: len(part.steps)])


def test_a_run_that_is_stopped_at_once_has_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first curve there is nothing to keep."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(decay, "jacobian_norms", interrupted)
    with pytest.raises(Interrupted) as caught:
        run_decay(DecaySettings(**SMALL))
    assert caught.value.partial is None


def test_a_direct_path_has_no_interval() -> None:
    """The product of keep gates is exact, also beside an estimate."""
    result = run_decay(DecaySettings(**SMALL, method="krylov"))
    (direct,) = (curve for curve in result.curves if curve.path == "direct")
    assert direct.log10_norm_upper is None
    assert_same_log_norm(direct.log10_norm, direct.steps * math.log10(0.5))
