"""What torch's operations do, on `Wide` arrays: one small function for each, by torch's name.

Only those are here that can leave float64's range, or that stand between two that can. Everything
else is computed by torch itself in float64 (see `gradflow.engine.finiteness.shadow`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradflow.engine.finiteness import wide as wf
from gradflow.engine.finiteness.wide import Wide

ONE = wf.wide(1.0)


def as_wide(value: Any) -> Wide:
    """Return an operand (an array, a truth value or a plain number) as a `Wide`."""
    return value if isinstance(value, Wide) else wf.wide(value)


def _add(one: Any, other: Any, alpha: float = 1) -> Wide:
    one, other = as_wide(one), as_wide(other)
    return wf.add(one, other if alpha == 1 else wf.multiply(as_wide(alpha), other))


def _subtract(one: Any, other: Any, alpha: float = 1) -> Wide:
    return _add(one, wf.negative(as_wide(other)), alpha)


def _multiply(one: Any, other: Any) -> Wide:
    return wf.multiply(as_wide(one), as_wide(other))


def _divide(one: Any, other: Any) -> Wide:
    return wf.divide(as_wide(one), as_wide(other))


def _power(base: Wide, exponent: float) -> Wide:
    return wf.power(base, float(exponent))


def _sigmoid(value: Wide) -> Wide:
    """Return 1 / (1 + e^-v), which loses nothing where numbers have no end."""
    return wf.reciprocal(wf.add(ONE, wf.exponential(wf.negative(value))))


def _sigmoid_backward(gradient: Wide, result: Wide) -> Wide:
    return wf.multiply(gradient, wf.multiply(result, wf.subtract(ONE, result)))


def _tanh(value: Wide) -> Wide:
    small = value.exponent < -1.0  # tanh v = v to float64's last digit
    return wf.choose(small, value, wf.plain_function(np.tanh, value))


def _tanh_backward(gradient: Wide, result: Wide) -> Wide:
    return wf.multiply(gradient, wf.subtract(ONE, wf.multiply(result, result)))


def _relu(value: Wide) -> Wide:
    return wf.choose(value.mantissa > 0.0, value, wf.wide(0.0))


def _threshold_backward(gradient: Wide, value: Wide, threshold: float) -> Wide:
    return wf.choose(wf.greater(value, as_wide(threshold)), gradient, wf.wide(0.0))


def _expm1(value: Wide) -> Wide:
    small = np.abs(value.to_float64()) < 1.0
    return wf.choose(
        small,
        wf.plain_function(np.expm1, value),
        wf.subtract(wf.exponential(value), ONE),
    )


def _sinh(value: Wide) -> Wide:
    small = np.abs(value.to_float64()) < 1.0
    grown = wf.subtract(wf.exponential(value), wf.exponential(wf.negative(value)))
    return wf.choose(small, wf.plain_function(np.sinh, value), wf.multiply(wf.wide(0.5), grown))


def _cosh(value: Wide) -> Wide:
    grown = wf.add(wf.exponential(value), wf.exponential(wf.negative(value)))
    return wf.multiply(wf.wide(0.5), grown)


def _maximum(one: Any, other: Any) -> Wide:
    one, other = as_wide(one), as_wide(other)
    return wf.choose(wf.greater(one, other), one, other)


def _minimum(one: Any, other: Any) -> Wide:
    one, other = as_wide(one), as_wide(other)
    return wf.choose(wf.greater(one, other), other, one)


def _clamp(value: Wide, min: Any = None, max: Any = None) -> Wide:  # noqa: A002 - torch's names
    low = value if min is None else _maximum(value, min)
    return low if max is None else _minimum(low, max)


def _lerp(one: Wide, other: Wide, weight: Any) -> Wide:
    return wf.add(one, wf.multiply(as_wide(weight), wf.subtract(other, one)))


def _addcmul(value: Wide, one: Wide, other: Wide, value_: float = 1) -> Wide:
    return _add(value, wf.multiply(one, other), value_)


def _sum(value: Wide, dim: Any = None, keepdim: bool = False, **_: Any) -> Wide:
    return wf.total(value, _axes(value, dim), keepdims=keepdim)


def _mean(value: Wide, dim: Any = None, keepdim: bool = False, **_: Any) -> Wide:
    axes = _axes(value, dim)
    count = math.prod(value.shape[axis] for axis in axes)
    return wf.multiply(wf.wide(1.0 / count), wf.total(value, axes, keepdims=keepdim))


def _variance(
    value: Wide, dim: Any = None, correction: float | None = 1, keepdim: bool = False
) -> Wide:
    axes = _axes(value, dim)
    count = math.prod(value.shape[axis] for axis in axes)
    off = wf.subtract(value, _mean(value, list(axes), keepdim=True))
    squares = wf.total(wf.multiply(off, off), axes, keepdims=keepdim)
    return wf.divide(squares, as_wide(count - (1 if correction is None else correction)))


def _axes(value: Wide, dim: Any) -> tuple[int, ...]:
    rank = len(value.shape)
    if dim is None or dim == []:
        return tuple(range(rank))
    return tuple(axis % rank for axis in ([dim] if isinstance(dim, int) else dim))


def _product_and_sum(
    bias: Wide, one: Wide, other: Wide, *, beta: float = 1, alpha: float = 1
) -> Wide:
    product = wf.multiply(as_wide(alpha), wf.matrix_product(one, other))
    return wf.add(wf.multiply(as_wide(beta), bias), product)


def _matrix_vector(matrix: Wide, vector: Wide) -> Wide:
    return wf.matrix_product(matrix, vector[:, None])[:, 0]


def _dot(one: Wide, other: Wide) -> Wide:
    return wf.total(wf.multiply(one, other), (0,))


def _where(condition: Any, one: Any, other: Any) -> Wide:
    return wf.choose(np.asarray(condition, dtype=bool), as_wide(one), as_wide(other))


OPERATIONS: dict[str, Callable[..., Wide]] = {
    "abs": wf.magnitude,
    "add": _add,
    "addcmul": lambda v, a, b, value=1: _addcmul(v, a, b, value),
    "addmm": _product_and_sum,
    "baddbmm": _product_and_sum,
    "bmm": wf.matrix_product,
    "clamp": _clamp,
    "clamp_max": _minimum,
    "clamp_min": _maximum,
    "cosh": _cosh,
    "div": _divide,
    "dot": _dot,
    "exp": wf.exponential,
    "expm1": _expm1,
    "lerp": _lerp,
    "log": wf.logarithm,
    "maximum": _maximum,
    "mean": _mean,
    "minimum": _minimum,
    "mm": wf.matrix_product,
    "mul": _multiply,
    "mv": _matrix_vector,
    "neg": wf.negative,
    "pow": _power,
    "reciprocal": wf.reciprocal,
    "relu": _relu,
    "rsqrt": lambda v: wf.power(v, -0.5),
    "rsub": lambda one, other, alpha=1: _subtract(other, one, alpha),
    "sigmoid": _sigmoid,
    "sigmoid_backward": _sigmoid_backward,
    "sinh": _sinh,
    "sqrt": lambda v: wf.power(v, 0.5),
    "sub": _subtract,
    "sum": _sum,
    "tanh": _tanh,
    "tanh_backward": _tanh_backward,
    "threshold_backward": _threshold_backward,
    "var": _variance,
    "where": _where,
}
"""torch's name (without the mark of an operation in place) to the operation on `Wide` arrays."""

MOVES = frozenset({
    "_to_copy", "_unsafe_view", "cat", "clone", "constant_pad_nd", "contiguous", "flip", "gather",
    "index_select", "permute", "repeat", "roll", "select_backward", "slice_backward", "stack",
})  # fmt: skip
"""Operations that move numbers without changing them; they may add zeros."""

SOURCES = frozenset({
    "bernoulli", "empty_like", "fill", "full_like", "new_empty", "new_empty_strided", "new_full",
    "new_ones", "new_zeros", "normal", "ones_like", "rand_like", "randn_like", "uniform", "zero",
    "zeros_like",
})  # fmt: skip
"""Operations whose numbers come from nowhere else: they are what torch says they are."""

PRODUCTS = frozenset({"addmm", "baddbmm", "bmm", "dot", "mm", "mv"})
"""Matrix products, the maps by which a recurrence reads its input and its state."""
