"""What the table and the figure of timings say in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradflow.present.numbers import number_text
from gradflow.records.speed import SpeedCase, SpeedResult


def case_text(case: SpeedCase) -> str:
    """Return a case in one line.

    >>> case_text(SpeedCase("lstm", 64, 200, "float64", 2))
    'lstm 64, T = 200, float64, 2 threads'
    """
    threads = "1 thread" if case.threads == 1 else f"{case.threads} threads"
    return f"{case.cell} {case.hidden}, T = {case.steps:,}, {case.dtype}, {threads}"


def seconds_text(seconds: float) -> str:
    """Return a duration to three digits in the unit that suits it.

    >>> seconds_text(0.01234), seconds_text(2.5), seconds_text(4.2e-5)
    ('12.3 ms', '2.5 s', '42 us')
    """
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= size or unit == "us":
            return f"{number_text(seconds / size, 3)} {unit}"
    raise AssertionError("every duration has a unit")


def bytes_text(count: int) -> str:
    """Return an amount of memory to three digits.

    >>> bytes_text(856_968), bytes_text(36_326_400), bytes_text(12)
    ('857 kB', '36.3 MB', '12 B')
    """
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{number_text(count / size, 3)} {unit}"
    return f"{count} B"


def finding(result: SpeedResult, cases: Sequence[SpeedCase] = ()) -> Iterator[str]:
    """Yield, for each case (all of them where none is named), how gradflow stands.

    Between the usual ways and the floor; an unroll gives one point alone, and is left out.
    """
    for case in cases or result.cases:
        ratios = [ratio for ratio in result.ratios if ratio.case == case]
        faster = [
            f"{number_text(ratio.value, 3)} times as fast as {ratio.numerator}"
            for ratio in ratios
            if ratio.denominator == "gradflow" and ratio.numerator != "unroll"
        ]
        floor = [
            f"{number_text(ratio.value, 3)} times the floor"
            for ratio in ratios
            if ratio.denominator == "floor"
        ]
        if faster or floor:
            yield f"{case_text(case)}: gradflow is {', '.join([*faster, *floor])}."
