"""The words of a report around `gradflow inspect`."""

from __future__ import annotations

from collections.abc import Sequence

from gradflow.present.report.formula import norm
from gradflow.present.report.question import Question, Statement
from gradflow.records.inspect import InspectResult


def inspect_findings(result: InspectResult) -> Sequence[str]:
    """Return the verdict, line by line."""
    return [line.strip() for line in result.verdict if line.strip()]


INSPECT = Question(
    command="inspect",
    title="Does the gradient reach the early steps of the model, and is anything broken?",
    statements=(
        Statement(
            (
                norm("partial s_t / partial s_t-k"),
                norm("partial L / partial h_t"),
            ),
            "How much of a state is felt k steps later, and the gradient of the loss L at every "
            "state; both of the unrolled model in float64.",
        ),
    ),
    findings=inspect_findings,
    shows="How far back this model's gradient reaches on these data (its memory horizon), how its "
    "gates stand, and findings with codes: `gradflow explain CODE` says what each means.",
    shows_not="A gradient that arrives need not be used: whether the task is learned is for its "
    "own metric to say.",
    units="Horizon and half-life in steps; the Lyapunov exponent in nats per step; the keep gate "
    "as its mean with the range over the run.",
    captions={
        "inspect": "How much of a state is felt k steps later: the mean of the windows with their "
        "range, beside the product of keep gates.",
        "gradient": "The gradient of the loss at every state, in float64 and in the model's own "
        "precision.",
        "gates": "How often each gate has which value.",
        "depth": "The gradient of the loss over layers and time.",
    },
    positional=("file",),
)
