"""Numbers as text: enough digits to read, plain ASCII, and a word where there is no number."""

from __future__ import annotations

import math

ABSENT = "-"


def number_text(value: float | None, digits: int = 6) -> str:
    """Return a number to `digits` significant digits; "-" where there is none.

    >>> number_text(0.1), number_text(-25.963731050576), number_text(None)
    ('0.1', '-25.9637', '-')
    """
    return ABSENT if value is None else f"{value:.{digits}g}"


def signed_text(value: float | None, digits: int = 3) -> str:
    """Return a number with its sign, to `digits` digits; a difference is never blank.

    >>> signed_text(1.7047481), signed_text(-2e-16), signed_text(0.0)
    ('+1.7', '-2e-16', '0')
    """
    if value is None:
        return ABSENT
    return "0" if value == 0 else f"{value:+.{digits}g}"


def range_text(low: float | None, high: float | None) -> str:
    """Return one number where both ends read the same to six digits, else "low..high".

    The lower end has four digits: with six a range would not fit a terminal of 80 columns.

    >>> range_text(0.1, 0.1 + 1e-12), range_text(9.62834e-06, 0.999998)
    ('0.1', '9.628e-06..0.999998')
    """
    if low is None or high is None:
        return number_text(high if low is None else low)
    if number_text(low) == number_text(high):
        return number_text(high)
    return f"{number_text(low, 4)}..{number_text(high)}"


def log10_text(value: float, digits: int = 6) -> str:
    """Return a log10 norm: a number, "zero" for -inf, "inf" or "nan".

    >>> log10_text(-100.0), log10_text(float("-inf"))
    ('-100', 'zero')
    """
    return "zero" if value == -math.inf else number_text(value, digits)


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun.

    >>> counted(1, "zero"), counted(20, "zero", "zeros")
    ('1 zero', '20 zeros')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
