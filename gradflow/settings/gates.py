"""The values at which a gate can be held, and the gains of a recurrence, as pydantic types."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import BeforeValidator

from gradflow.settings.base import refuse_truth
from gradflow.settings.problems import show

RNN_GAIN_HINT = "A recurrent gain of 1 or more is for --cell rnn alone."


def read_number(value: Any) -> float:
    """Return `value` as a finite float.

    Raises:
        ValueError: it is not a number, or not finite.
    """
    try:
        number = float(refuse_truth(value))
    except (TypeError, ValueError):
        raise ValueError(f"must be a number, like 0.9; got {show(value)}.") from None
    if not math.isfinite(number):
        raise ValueError(f"must be a finite number, like 0.9; got {show(value)}.")
    return number


def require_gate_value(value: Any, hint: str = "") -> float:
    """Return `value` as the value of a gate, strictly between 0 and 1.

    >>> require_gate_value("0.9")
    0.9

    Raises:
        ValueError: no sigmoid has that value.
    """
    number = read_number(value)
    if not 0 < number < 1:
        almost = "0.999 for an almost open gate" if number >= 1 else "0.001 for an almost shut gate"
        more = f" {hint}" if hint and number >= 1 else ""
        raise ValueError(
            "must lie strictly between 0 and 1, because a sigmoid never reaches either end; "
            f"got {number!r}. Use {almost}.{more}"
        )
    return number


def require_gain(value: float) -> float:
    """Return `value` as the gain of an orthogonal recurrent matrix, which has no sign.

    Raises:
        ValueError: the gain is negative.
    """
    if value < 0:
        raise ValueError(
            "must be at least 0, because a gain times a random orthogonal matrix has no sign; "
            f"got {value:g}. Use {-value:g}."
        )
    return value


def coupled_or_gate_value(value: Any) -> Any:
    """Return "coupled" (the input gate is 1 - forget gate) or a gate value."""
    if isinstance(value, str) and value.strip().lower() == "coupled":
        return "coupled"
    try:
        return require_gate_value(value)
    except ValueError as problem:
        raise ValueError(f"{problem} Or say 'coupled' for 1 - forget gate.") from None


GateValue = Annotated[float, BeforeValidator(require_gate_value)]
Gain = Annotated[float, BeforeValidator(lambda value: require_gain(read_number(value)))]
