"""A report of twenty results, timed: `pytest tests/benchmarks/bench_report.py`.

The name keeps it out of the tests. Results are small real ones of every command, some thirty
figures in all; they are made before the clock runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradflow.present.report import build_report, report_files
from gradflow.records.report import StoredRun
from tests.present.report.stored import every_run

Benchmark = Callable[..., Any]
FORMS: dict[str, tuple[Any, ...]] = {"page": ("svg",), "all formats": ("png", "svg", "pdf")}


@pytest.mark.parametrize("form", FORMS)
def test_twenty_results(benchmark: Benchmark, form: str) -> None:
    """The page alone takes a few seconds, with all formats of all figures below half a minute."""
    some = every_run()
    runs = [StoredRun(f"runs/{number}", some[number % len(some)].result) for number in range(20)]

    def make() -> dict[str, bytes]:
        return report_files(build_report(runs, formats=FORMS[form]))

    files = benchmark.pedantic(make, rounds=1, iterations=1)  # type: ignore[attr-defined]
    assert files["report.html"]
