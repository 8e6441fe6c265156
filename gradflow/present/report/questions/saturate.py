"""The words of a report around `gradflow saturate`."""

from __future__ import annotations

from collections.abc import Sequence

from gradflow.present import saturate_words
from gradflow.present.report.formula import frac, row
from gradflow.present.report.question import Question, Statement
from gradflow.records import SaturateResult


def saturate_findings(result: SaturateResult) -> Sequence[str]:
    """Return how many trials failed and by whose fault, and the first fault."""
    sentences = (saturate_words.summary(result), saturate_words.first_fault(result))
    return [sentence for sentence in sentences if sentence]


SATURATE = Question(
    command="saturate",
    title="Do the cells stay finite, forward and backward, when their gates saturate?",
    statements=(
        Statement(
            (
                row("sigma (a) =", frac("1", "1 + e^-a")),
                row("sigma' (a) = sigma (a) sigma (-a)"),
            ),
            "A gate and its slope at the pre-activation a, in the form that does not cancel.",
        ),
    ),
    findings=saturate_findings,
    shows="Whether one step and its gradients are finite with a huge number in a gate, in the "
    "input or in the state. An overflow is honest where the true number does not fit the dtype; a "
    "fault is the cell's own.",
    shows_not="A saturated gate that is finite still passes no gradient to its own weights: the "
    "percentages tell how many of the gates' slopes are exactly zero. Finite is not trainable.",
    units="A tile names the gravest verdict of its trials and in how many of them it was met; "
    "magnitudes are of the pre-activation, the input or the state, with both signs.",
    captions={
        "saturate": "A panel for each number format, a row for each cell and implementation, "
        "magnitudes across. Verdicts are written in the tiles, so no colour need be seen."
    },
    in_verdict=2,
)
