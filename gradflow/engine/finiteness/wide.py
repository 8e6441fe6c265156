"""Numbers with float64's digits and (nearly) no largest number: mantissa times 2^(64 exponent).

The true value behind an overflow has to be computed somewhere where it does not overflow, also
when the overflow happened in float64. A `Wide` array keeps a float64 mantissa within 2^-32 ... 2^32
and its exponent as a float64 integer, so that exp of float64's largest number, and a product of
forty such, have a place. Where nothing leaves float64's range the operations round as float64 does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# arithmetic on arrays without axes gives plain numbers
Numbers = Floats | np.float64 | float
Truths = NDArray[np.bool_] | np.bool_

BITS = 64  # of the radix 2^64 of the exponents
LN_RADIX = BITS * float(np.log(2.0))
# ln(2^64) = HEAD + TAIL; HEAD has 21 bits, so that k HEAD is exact up to k = 2^32
_HEAD = 44.36138916015625
_TAIL = 3.0395680249802704e-05
# Sums of products of numbers within these exponents are normal float64 numbers.
PLAIN = 7.0
_DEEPEST = 64.0  # shifts by more leave nothing of a float64 number


@dataclass(frozen=True)
class Wide:
    """An array of `mantissa * 2**(64 * exponent)`; a zero has mantissa 0 and exponent -inf."""

    mantissa: Floats
    exponent: Floats

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape."""
        return self.mantissa.shape

    def __getitem__(self, key: Any) -> Wide:
        """Return a part of the array, indexed as NumPy does."""
        return Wide(np.asarray(self.mantissa[key]), np.asarray(self.exponent[key]))

    @property
    def is_plain(self) -> bool:
        """True where float64 can do arithmetic on all of it without leaving its range."""
        inside = (np.abs(self.exponent) < PLAIN) | (self.mantissa == 0.0)
        return bool(np.all(inside & np.isfinite(self.mantissa)))

    def to_float64(self) -> Floats:
        """Return the array in float64: inf and 0 stand for what is beyond its range."""
        exponent = np.clip(np.nan_to_num(self.exponent, nan=0.0), -_DEEPEST, _DEEPEST)
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.ldexp(self.mantissa, BITS * exponent.astype(np.int64)))

    def log10_size(self) -> Floats:
        """Return log10 |value|: -inf for zero, nan where the value is not known."""
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.log10(np.abs(self.mantissa)) + self.exponent * (BITS * np.log10(2.0))
        return np.where(self.mantissa == 0.0, -np.inf, size)

    def fits(self, limit: float) -> NDArray[np.bool_]:
        """Return where the value is known and its size below `limit`, which rounds to inf."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.abs(self.to_float64()) < limit)


def wide(values: object) -> Wide:
    """Return float64 values as they are."""
    return scaled(np.asarray(values, dtype=np.float64), 0.0)


def scaled(values: Numbers, exponent: Numbers) -> Wide:
    """Return `values * 2**(64 * exponent)`, with the mantissas brought back to their range.

    >>> huge = scaled(np.array([3.0 * 2.0**70]), 5000.0)
    >>> huge.mantissa, huge.exponent
    (array([192.]), array([5001.]))
    """
    _, bits = np.frexp(values)
    turns = np.rint(bits / BITS)
    with np.errstate(invalid="ignore", over="ignore"):
        exponents = np.where(values == 0.0, -np.inf, turns + np.asarray(exponent))
        mantissa = np.ldexp(values, (-BITS * turns).astype(np.int64))
    mantissa = np.where(exponents == -np.inf, 0.0, mantissa)
    return Wide(np.where(np.isnan(exponents), np.nan, mantissa), exponents)


def add(one: Wide, other: Wide) -> Wide:
    """Return the sum, elementwise."""
    top = np.maximum(one.exponent, other.exponent)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        return scaled(_shifted(one, top) + _shifted(other, top), top)


def negative(value: Wide) -> Wide:
    """Return -value."""
    return Wide(np.asarray(-value.mantissa), value.exponent)


def magnitude(value: Wide) -> Wide:
    """Return |value|."""
    return Wide(np.asarray(np.abs(value.mantissa)), value.exponent)


def subtract(one: Wide, other: Wide) -> Wide:
    """Return one - other, elementwise."""
    return add(one, negative(other))


def multiply(one: Wide, other: Wide) -> Wide:
    """Return the product, elementwise; an exact zero times anything known is zero."""
    mantissa = one.mantissa * other.mantissa
    with np.errstate(invalid="ignore", over="ignore"):
        exponent = np.where(mantissa == 0.0, -np.inf, one.exponent + other.exponent)
    return scaled(mantissa, exponent)


def reciprocal(value: Wide) -> Wide:
    """Return 1 / value; infinite at zero."""
    with np.errstate(divide="ignore"):
        mantissa = 1.0 / value.mantissa
    return scaled(mantissa, np.where(value.mantissa == 0.0, 0.0, -value.exponent))


def divide(one: Wide, other: Wide) -> Wide:
    """Return one / other, elementwise; what is zero over zero is not known."""
    with np.errstate(divide="ignore", invalid="ignore"):
        mantissa = one.mantissa / other.mantissa
        exponent = one.exponent - np.where(other.mantissa == 0.0, 0.0, other.exponent)
    return scaled(mantissa, np.where(np.isfinite(mantissa), exponent, 0.0))


def exponential(value: Wide) -> Wide:
    """Return e^value = 2^(64 k) e^r, with k the whole part of value / ln(2^64)."""
    x = value.to_float64()
    with np.errstate(over="ignore", invalid="ignore"):
        count = np.rint(x / LN_RADIX)
        rest = (x - count * _HEAD) - count * _TAIL
    # beyond 2^53 r is not known any more; any r will do where only the size counts
    rest = np.clip(np.where(np.isfinite(x), rest, np.where(np.isnan(x), np.nan, 0.0)), -23.0, 23.0)
    return scaled(np.exp(rest), np.where(np.isnan(count), 0.0, count))


def logarithm(value: Wide) -> Wide:
    """Return ln value; a number that float64 holds, whatever the value is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        plain = np.log(value.to_float64())
        far = np.log(value.mantissa) + value.exponent * LN_RADIX
    return wide(np.where(np.abs(value.exponent) < PLAIN, plain, far))


def power(base: Wide, exponent: float) -> Wide:
    """Return base**exponent for a plain number; a half power of a negative base is not known."""
    with np.errstate(all="ignore"):
        turns = np.asarray(base.exponent) * exponent
        whole = np.floor(turns)
        mantissa = np.power(base.mantissa, exponent) * np.exp2(BITS * (turns - whole))
    at_zero = np.power(0.0, exponent) if exponent >= 0 else np.inf
    known = np.where(base.mantissa == 0.0, at_zero, mantissa)
    return scaled(known, np.where(base.mantissa == 0.0, 0.0, whole))


def total(value: Wide, axes: tuple[int, ...], *, keepdims: bool = False) -> Wide:
    """Return the sum over axes."""
    if not axes:
        return value
    top = np.max(value.exponent, axis=axes, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        mantissa = np.sum(_shifted(value, top), axis=axes, keepdims=keepdims)
    return scaled(np.asarray(mantissa), top if keepdims else np.squeeze(top, axis=axes))


def matrix_product(one: Wide, other: Wide) -> Wide:
    """Return one @ other for (..., rows, inner) and (..., inner, columns)."""
    if one.is_plain and other.is_plain:
        return wide(one.to_float64() @ other.to_float64())
    left = Wide(one.mantissa[..., :, :, None], one.exponent[..., :, :, None])
    right = Wide(other.mantissa[..., None, :, :], other.exponent[..., None, :, :])
    return total(multiply(left, right), (left.mantissa.ndim - 2,))


def plain_function(function: Callable[[Floats], Floats], value: Wide) -> Wide:
    """Return a function whose values float64 holds for every argument, such as tanh."""
    with np.errstate(all="ignore"):
        return wide(function(value.to_float64()))


def choose(condition: Truths, one: Wide, other: Wide) -> Wide:
    """Return `one` where the condition holds, else `other`."""
    return Wide(
        np.where(condition, one.mantissa, other.mantissa),
        np.where(condition, one.exponent, other.exponent),
    )


def greater(one: Wide, other: Wide) -> NDArray[np.bool_]:
    """Return where one > other."""
    return np.asarray(subtract(one, other).mantissa > 0.0)


def _shifted(value: Wide, top: Numbers) -> Floats:
    """Return the mantissas at the exponent `top`, which is nowhere less than theirs."""
    with np.errstate(invalid="ignore"):  # inf - inf, where the exponents are equal
        shift = np.where(value.exponent == top, 0.0, value.exponent - top)
    shift = np.clip(np.nan_to_num(shift, nan=0.0), -_DEEPEST, 0.0)
    return np.asarray(np.ldexp(value.mantissa, BITS * shift.astype(np.int64)))
