"""What the table and the figure of a spectrum say in words: conditions, findings, paces."""

from __future__ import annotations

import math

from gradflow.present.cell_titles import cell_title
from gradflow.present.numbers import ABSENT, counted, number_text
from gradflow.records.spectrum import SpectrumResult

SURE = 2.0  # standard errors: an exponent nearer to 0 than so many is not told from it


def conditions(result: SpectrumResult) -> str:
    """Return what was measured, as one line."""
    gain = "" if result.gain is None else f"recurrent gain {result.gain:g}, "
    runs = []
    if result.networks > 1:
        runs.append(counted(result.networks, "network"))
    if result.trajectories > 1:
        runs.append(counted(result.trajectories, "trajectory", "trajectories"))
    each = f" of {' times '.join(runs)}" if runs else ""
    steps = f"{counted(result.steps, 'step')} after {result.warmup:,}{each}"
    return f"{gain}state of {result.state_size:,}, {_input(result)}, {steps}"


def _input(result: SpectrumResult) -> str:
    if result.fed.kind == "data":
        return f"input {result.fed.file}"
    return f"{result.fed.kind} input"


def pace(exponent: float) -> str:
    """Return how long an exponent takes to halve or to double, in words of the table.

    >>> pace(-math.log(2) / 10), pace(math.log(2)), pace(0.0)
    ('halves in 10', 'doubles in 1', 'holds')
    """
    if abs(exponent) < 1e-12:
        return "holds"
    word = "halves" if exponent < 0 else "doubles"
    return f"{word} in {number_text(math.log(2) / abs(exponent), 4)}"


def factor(exponent: float) -> str:
    """Return what one step multiplies by, e^exponent.

    >>> factor(0.0), factor(-math.inf)
    ('1', '0')
    """
    return number_text(math.exp(exponent)) if exponent < 700 else f"e^{exponent:.4g}"


def error_text(error: float) -> str:
    """Return a standard error to two digits, "-" where it is unknown."""
    return ABSENT if math.isnan(error) else number_text(error, 2)


def leading(result: SpectrumResult) -> str:
    """Return what the largest exponent says, in one sentence."""
    first, error = float(result.exponents[0]), float(result.standard_errors[0])
    if first == -math.inf:
        return "No direction of the state survives."
    sure = SURE * error if math.isfinite(error) else 0.0
    known = "" if math.isnan(error) else f" (standard error {error_text(error)})"
    value = f"The largest exponent is {first:.4g}{known} nats per step"
    if abs(first) <= max(sure, 1e-12):
        return f"{value}, not told from 0: the longest memory neither fades nor grows."
    steps = number_text(math.log(2) / abs(first), 3)
    pace = "every step" if steps == "1" else f"every {steps} steps"
    if first < 0:
        return f"{value}: the longest memory halves {pace}."
    return f"{value}: nearby states part, doubling their distance {pace}."


def totals(result: SpectrumResult) -> str:
    """Return the sum and the dimension, in one sentence."""
    whole = result.count == result.state_size
    what = "all exponents" if whole else f"these {result.count} exponents"
    number = "minus infinity" if result.sum == -math.inf else number_text(result.sum)
    dimension = result.kaplan_yorke_dimension
    if dimension is None:
        return (
            f"The sum of {what} is {number}; the Kaplan-Yorke dimension needs more of them: their "
            "sum is not negative yet."
        )
    return (
        f"The sum of {what} is {number} nats per step; the Kaplan-Yorke dimension is "
        f"{number_text(dimension, 5)} of {result.state_size:,}."
    )


def title(result: SpectrumResult) -> str:
    """Return the title of the table and of the figure."""
    return f"Lyapunov exponents of the {cell_title(result.cell)}"
