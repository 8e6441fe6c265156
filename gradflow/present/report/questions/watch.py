"""The words of a report around `gradflow watch`."""

from __future__ import annotations

from collections.abc import Sequence

from gradflow.present import watch_words
from gradflow.present.report.formula import norm
from gradflow.present.report.question import Question, Statement
from gradflow.records.watch import WatchRun


def watch_findings(run: WatchRun) -> Sequence[str]:
    """Return how long was watched and whether anything was wrong, then the warnings."""
    grave = [finding for finding in run.findings if finding.severity != "info"]
    head = f"{watch_words.title(run)}. {watch_words.subtitle(run)}"
    return [head, *map(watch_words.finding_text, grave[:_MOST])]


_MOST = 8
WATCH = Question(
    command="watch",
    title="How far back does the gradient reach while the model trains?",
    statements=(
        Statement(
            (norm("partial L / partial h_t"),),
            "The gradient of the training's own loss L at every state, sampled while it trains.",
        ),
    ),
    findings=watch_findings,
    shows="How the memory horizon of every recurrent layer changes from update to update, and "
    "when something went wrong first.",
    shows_not="Samples are taken at intervals: what lies between two of them is not seen.",
    units="Horizon and half-life in steps; what is left at the start as a power of ten of the "
    "largest gradient.",
    captions={
        "watch": "Gradient norms over updates and steps back from the end, against the largest "
        "of each sample; the line is the horizon."
    },
    positional=("log",),
    stored="{folder}",
)
