"""The words of a report around `gradflow spectrum`."""

from __future__ import annotations

from collections.abc import Sequence

from gradflow.present import spectrum_words
from gradflow.present.cell_titles import cell_title
from gradflow.present.report.formula import frac, row
from gradflow.present.report.question import Question, Statement
from gradflow.records.spectrum import SpectrumResult


def spectrum_findings(result: SpectrumResult) -> Sequence[str]:
    """Return what the largest exponent says, the sum, and how much is gone at once."""
    sentences = [f"{cell_title(result.cell)}: {_lower_first(spectrum_words.leading(result))}"]
    sentences.append(spectrum_words.totals(result))
    if result.vanished:
        sentences.append(
            f"Of {result.count:,} directions nothing is left of {result.vanished:,} "
            "(exponents of minus infinity)."
        )
    return sentences


def _lower_first(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


SPECTRUM = Question(
    command="spectrum",
    title="What does each direction of the state shrink or grow by per step?",
    statements=(
        Statement(
            (
                row("J_t Q_t-1 = Q_t R_t"),
                row("lambda_i =", frac("1", "T"), "sum_t ln |R_ii (t)|"),
            ),
            "Lyapunov exponents by a QR decomposition at every step, in nats per step: e to the "
            "power \u03bb is a factor per step.",
        ),
    ),
    findings=spectrum_findings,
    shows="Not the best kept direction alone but every one: how many memories fade slowly, how "
    "many are lost at once, and whether nearby states part (a positive exponent: chaos).",
    shows_not="Exponents are means along one run; what a single long-lived event does to the state "
    "is averaged away. Directions change from step to step, so a unit has no exponent.",
    units="Exponents and standard errors in nats per step, the pace in steps.",
    captions={
        "spectrum": "A dot for each exponent by its number, with two standard errors either way. "
        "What is exactly gone stands on the floor below the axis."
    },
)
