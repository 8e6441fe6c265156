"""The words of a report around `gradflow step`."""

from __future__ import annotations

from collections.abc import Sequence

from gradflow.present.report.formula import frac, row
from gradflow.present.report.question import Question, Statement
from gradflow.present.step import step_table
from gradflow.records.step import StepResult


def step_findings(result: StepResult) -> Sequence[str]:
    """Return the new state and the direct coefficient."""
    return [f"{step_table(result).title}."]


STEP = Question(
    command="step",
    title="What does one step, or several, make of given gates and states?",
    statements=(
        Statement(
            (row("c_t = f c_t-1 + i g"), row(frac("partial c_t", "partial c_t-1"), "= f")),
            "An LSTM's cell state and its direct derivative, the gates taken as constants.",
        ),
        Statement(
            (row("h_t = z h_t-1 + (1-z) n"), row(frac("partial h_t", "partial h_t-1"), "= z")),
            "A GRU's state; here z keeps, as in torch (papers differ).",
        ),
    ),
    findings=step_findings,
    shows="Every equation with its numbers put in, as it is worked by hand, and what the direct "
    "derivative leaves out.",
    shows_not="One unit and no weights: how much the part that is left out matters in a network "
    "is what `gradflow decay --paths` measures.",
    units="States, gates and derivatives have no unit.",
    captions={"step": "The cell as a drawing: what each step keeps, writes and shows."},
    positional=("cell",),
)
