"""The words of a report around `gradflow speed`."""

from __future__ import annotations

from collections.abc import Sequence

from gradflow.present import speed_words
from gradflow.present.report.formula import frac
from gradflow.present.report.question import Question, Statement
from gradflow.records.speed import SpeedResult


def speed_findings(result: SpeedResult) -> Sequence[str]:
    """Return for each case how gradflow stands between the usual ways and the floor."""
    return list(speed_words.finding(result))


SPEED = Question(
    command="speed",
    title="How long does the measurement take, beside the usual ways?",
    statements=(
        Statement(
            (frac("t_method", "t_gradflow"),),
            "Medians of the wall time over rounds in which every method runs once, on the same "
            "weights, input and state.",
        ),
    ),
    findings=speed_findings,
    shows="Times of the same numbers computed in several ways, with the bare matrix products (the "
    "floor) below which no way can be.",
    shows_not="Times belong to this machine and its load; ratios carry over better than seconds.",
    units="Seconds are medians over rounds; memory is the most that a method's tensors had at "
    "once; the error is relative to gradflow's norms.",
    captions={"speed": "Time against width on log axes, a line for each method."},
)
