"""The words of a report around `gradflow parity`."""

from __future__ import annotations

from collections.abc import Sequence

from gradflow.present import parity_words
from gradflow.present.numbers import number_text
from gradflow.present.report.formula import row
from gradflow.present.report.question import Question, Statement
from gradflow.records.parity import ParityResult


def parity_findings(result: ParityResult) -> Sequence[str]:
    """Return the answer with both names and the largest error, then the verdict in full."""
    a, b = parity_words.short_name(result.a), parity_words.short_name(result.b)
    largest = result.largest_error
    error = "an error that is no number" if largest is None else f"{number_text(largest, 2)}"
    count = len(result.comparisons)
    head = parity_words.headline(result)
    return [
        f"{head} between {a} and {b}: largest error {error} over {count} compared quantities.",
        result.verdict,
    ]


PARITY = Question(
    command="parity",
    title="Does one cell compute the same as another, forward and backward?",
    statements=(
        Statement(
            (row("max |a-b| <= tol * max ( 1 , max |a| )"),),
            "For every state, gate and gradient; a is the first side's number, b the second's, tol "
            "the tolerance.",
        ),
    ),
    findings=parity_findings,
    shows="Two cells that agree on random states, distinct biases, several rows and steps, and in "
    "every gradient, compute the same function of the same weights.",
    shows_not="Numbers equal in float64 may differ in float32 by rounding. What neither side shows "
    "(gates of a fused layer) is not compared.",
    units="Errors are absolute; what is allowed is the tolerance times the larger of 1 and the "
    "largest number of side A.",
    captions={
        "parity": "A dot for each compared quantity: left of the line it is within the tolerance, "
        "right of it beyond."
    },
    positional=("a", "b"),
)
