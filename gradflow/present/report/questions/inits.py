"""The words of a report around `gradflow inits`."""

from __future__ import annotations

from collections.abc import Sequence

from gradflow.present.cell_titles import cell_title
from gradflow.present.report.formula import frac, row
from gradflow.present.report.question import Question, Statement
from gradflow.records.inits import InitFlow, InitsResult


def inits_findings(result: InitsResult) -> Sequence[str]:
    """Return for each cell which initialization loses its gradient first, and which last."""
    cells = dict.fromkeys(flow.cell for flow in result.inits)
    return [_sentence(cell, result.of_cell(cell), result.threshold) for cell in cells]


def _sentence(cell: str, flows: Sequence[InitFlow], threshold: float) -> str:
    gone = sorted(
        (flow for flow in flows if flow.horizons.median is not None),
        key=lambda flow: flow.horizons.median or 0.0,
    )
    kept = [flow.init for flow in flows if flow.horizons.median is None]
    parts = []
    if gone:
        parts.append(f"{gone[0].init} is gone first, after {gone[0].horizons.median:.0f} steps")
    if kept:
        verb = "is" if len(kept) == 1 else "are"
        last = max(int(flow.steps[-1]) for flow in flows)
        parts.append(f"{', '.join(kept)} {verb} not gone within {last}")
    elif len(gone) > 1:
        parts.append(f"{gone[-1].init} lasts longest, {gone[-1].horizons.median:.0f} steps")
    return f"{cell_title(cell)}, gone meaning a norm of {threshold:g}: {'; '.join(parts)}."


INITS = Question(
    command="inits",
    title="What does an initialization do to gradient flow, before any training?",
    statements=(
        Statement(
            (row("f = sigma ( b_ih + b_hh )"), row("tau = neg", frac("1", "ln f"))),
            "The keep gate at rest is the sigmoid of the effective bias (torch adds two); \u03c4 "
            "is the time constant in steps.",
        ),
    ),
    findings=inits_findings,
    shows="How long a gradient lasts on the same input under each initialization, over several "
    "draws of the weights: the memory that training starts from.",
    shows_not="Which initialization trains best. A long horizon at the start also means that what "
    "is stored is hard to overwrite.",
    units="The norm as log10; a factor is per step; half-life, time constant and horizon "
    "(\u201csteps gone\u201d) in steps. Bands and ranges are over draws.",
    captions={
        "inits": "Norms over T, keep gates, time constants and the first step's singular values; "
        "lines and dots are medians over draws, bands and bars their spread."
    },
)
