"""The page on stacks is true: its Python runs, its numbers are measured."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradflow.config import DepthSettings
from gradflow.engine.depth import depth_norms
from gradflow.experiments.depth import LN10
from gradflow.experiments.depth_subjects import base_stack, batch_of, depth_subjects

PAGE = (Path(__file__).parent.parent.parent / "docs" / "stacks.md").read_text(encoding="utf-8")


def test_the_python_of_the_page_runs() -> None:
    """Pasted into a file, each block runs and prints one number."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for block, expected in zip(blocks, ("64", "3"), strict=True):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, "stacks.md", "exec"), {})
        assert printed.getvalue().strip() == expected


def stated(row: str) -> list[str]:
    """Return the numbers of a row of one of the page's tables, by what its first column begins."""
    return [cell.strip() for line in re.findall(rf"^\| {row} \|(.*)\|$", PAGE, flags=re.MULTILINE)
            for cell in line.split("|")]  # fmt: skip


def written(value: float) -> str:
    """Return a log10 norm as the page writes it."""
    return f"{value:.2f}" if np.isfinite(value) else "zero"


def measured(layer: int = 1, **changes: Any) -> list[tuple[float, float]]:
    """Return log10 norms of a layer at the end and 49 steps before, for each map of a request.

    What `gradflow depth` measures, at the two steps that the page states alone: a mean over the
    samples whose norm is not zero.
    """
    settings = DepthSettings(hidden=16, batch=4, **changes)
    (name,) = settings.cell
    stack, _ = base_stack(name, settings)
    x, lengths = batch_of(stack, settings)
    found = []
    for subject in depth_subjects(name, stack, settings):
        run = subject.stack.run(x, lengths=lengths, masks=subject.drawn)
        logs = depth_norms(subject.stack, run, at=[1, settings.steps]).log_norm[layer - 1, 0]
        first, last = (row[row.isfinite()].mean().item() / LN10 for row in logs)
        found.append((last, first))
    return found


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
def test_the_numbers_of_the_page_are_measured(cell: str) -> None:
    """Residual links over eight layers, and fresh masks against one, from layer 1."""
    (plain, far), (linked, linked_far) = measured(cell=cell, layers=8)
    dropped = {"cell": cell, "recurrent_dropout": 0.3, "residual": "no"}
    found = [plain, linked, far, linked_far, *[first for _, first in measured(**dropped)]]
    assert [written(value) for value in found] == stated(cell)
    if cell == "rnn":
        apart = measured(init="scaled-identity:0.95", **dropped)
        assert [written(first) for _, first in apart] == stated(
            "rnn, `--init scaled-identity:0.95`"
        )


def test_the_keep_gate_of_the_page_keeps_in_time() -> None:
    """--init forget-bias:2: from 10^-9.26 to 10^-1.06 over 49 steps."""
    found = [
        measured(3, residual="no", init=init)[0] for init in ("torch-default", "forget-bias:2")
    ]
    lifted = " to ".join(f"10^{first:.2f}" for _, first in found)
    assert lifted in PAGE
