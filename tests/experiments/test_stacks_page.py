"""The page on stacks is true: its Python runs, its numbers are measured."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

from gradflow.config import DepthSettings
from gradflow.experiments.depth import run_depth

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


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
def test_the_numbers_of_the_page_are_measured(cell: str) -> None:
    """Residual links over eight layers, and fresh masks against one, from layer 1."""
    sizes = {"hidden": 16, "batch": 4}
    plain, linked = run_depth(DepthSettings(cell=cell, layers=8, **sizes)).maps
    found = [m.row(1).log10_norm[lag] for lag in (0, -1) for m in (plain, linked)]
    dropped = {**sizes, "recurrent_dropout": 0.3, "residual": "no"}
    maps = run_depth(DepthSettings(cell=cell, **dropped)).maps
    found += [m.row(1).log10_norm[-1] for m in maps]
    assert [written(value) for value in found] == stated(cell)
    if cell == "rnn":
        apart = run_depth(DepthSettings(cell=cell, init="scaled-identity:0.95", **dropped)).maps
        assert [written(m.row(1).log10_norm[-1]) for m in apart] == stated(
            "rnn, `--init scaled-identity:0.95`"
        )


def test_the_keep_gate_of_the_page_keeps_in_time() -> None:
    """--init forget-bias:2: from 10^-9.26 to 10^-1.06 over 49 steps."""
    found = [
        run_depth(DepthSettings(hidden=16, batch=4, residual="no", init=init)).maps[0]
        for init in ("torch-default", "forget-bias:2")
    ]
    lifted = " to ".join(f"10^{m.row(3).log10_norm[-1]:.2f}" for m in found)
    assert lifted in PAGE
