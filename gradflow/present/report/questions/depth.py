"""The words of a report around `gradflow depth`."""

from __future__ import annotations

from collections.abc import Sequence

from gradflow.present import depth_words
from gradflow.present.numbers import number_text
from gradflow.present.report.formula import norm
from gradflow.present.report.question import Question, Statement
from gradflow.records.depth import DepthMap, DepthResult


def depth_findings(result: DepthResult) -> Sequence[str]:
    """Return what links and masks change; else how each stack's first layer fades."""
    return [*depth_words.findings(result), *map(_fading, result.maps)]


def _fading(found: DepthMap) -> str:
    parts = [
        f"{depth_words.row_title(row, found.directions)} {number_text(row.rate, 3)}"
        for row in found.rows
        if row.rate is not None
    ]
    rates = f"{', '.join(parts)} nats per step" if parts else "no rate"
    return f"{depth_words.map_title(found)}: {rates}."


DEPTH = Question(
    command="depth",
    title="How much of each layer is still felt at the top of a stack, at its end?",
    statements=(
        Statement(
            (norm("partial s_T^(L) / partial s_t^(l)"),),
            "The end of the last layer L by the state of layer l at step t, every path through "
            "time and depth together.",
        ),
    ),
    findings=depth_findings,
    shows="Through how many layers and steps a gradient comes, what residual links add, and what "
    "dropout masks take when they are drawn afresh or once per sequence.",
    shows_not="Weights are those of an initialization, so the map is that of the start of a "
    "training.",
    units="log10 of norms at lags counted in steps from each sample's own end; rates in nats per "
    "step, half-lives in steps.",
    captions={
        "depth": "A panel for each stack, a row for each layer, time running to the end; the "
        "scale is log10 of the norm.",
        "curves": "The same norms as lines, back from each sample's own end.",
    },
)
