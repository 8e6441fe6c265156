"""Numbers without a largest one: float64 where float64 is enough, mpmath where it is not."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradflow.engine.finiteness import wide as wf
from gradflow.engine.finiteness.operations import OPERATIONS

LARGEST = float(np.finfo(np.float64).max)
LN10 = float(np.log(10.0))
ordinary = st.floats(-1e60, 1e60).filter(lambda v: v == 0 or abs(v) > 1e-60)
pairs = st.tuples(ordinary, ordinary)


def size(value: wf.Wide) -> float:
    """Return log10 of a single number's size."""
    return float(value.log10_size())


@pytest.mark.parametrize("x", [1e3, 1e8, 1e300, LARGEST])
def test_exp_of_any_float64_has_a_size(x: float):
    """log10 e^x is x / ln 10, and e^x e^-x is 1 to the digits that x leaves it."""
    up, down = wf.exponential(wf.wide(x)), wf.exponential(wf.wide(-x))
    assert size(up) == pytest.approx(x / LN10, rel=1e-12)
    assert size(down) == pytest.approx(-x / LN10, rel=1e-12)
    assert wf.multiply(up, down).to_float64() == pytest.approx(1.0, rel=1e-12)


def test_a_product_of_forty_largest_exponentials_is_known():
    """The exponents have room: e^(40 max) times e^(-40 max) is 1."""
    up = down = wf.wide(1.0)
    for _ in range(40):
        up = wf.multiply(up, wf.exponential(wf.wide(LARGEST)))
        down = wf.multiply(down, wf.exponential(wf.wide(-LARGEST)))
    assert np.isfinite(up.exponent)
    assert wf.multiply(up, down).to_float64() == pytest.approx(1.0, rel=1e-13)


@given(pairs)
def test_arithmetic_rounds_as_float64_does(pair: tuple[float, float]):
    """Sums, differences and products of ordinary numbers are float64's to the last bit."""
    a, b = map(wf.wide, pair)
    assert wf.add(a, b).to_float64() == pair[0] + pair[1]
    assert wf.subtract(a, b).to_float64() == pair[0] - pair[1]
    assert wf.multiply(a, b).to_float64() == pair[0] * pair[1]
    if pair[1]:
        assert wf.divide(a, b).to_float64() == pair[0] / pair[1]


@given(st.lists(ordinary, min_size=2, max_size=6))
def test_a_sum_is_within_rounding_of_float64s(values: list[float]):
    """The order of additions may differ, nothing else."""
    found = wf.total(wf.wide(np.array(values)), (0,)).to_float64()
    assert abs(found - sum(values)) <= 1e-15 * sum(map(abs, values)) * len(values)


@pytest.mark.parametrize("v", [-1e8, -1e4, -95.0, -1.0, 0.0, 30.0, 1e4])
@pytest.mark.parametrize("name", ["sigmoid", "tanh", "expm1", "sinh", "cosh"])
def test_functions_agree_with_fifty_digits(name: str, v: float):
    """Size and sign of each function are mpmath's, far beyond float64's range."""
    with mpmath.workdps(50):
        exact = {
            "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
            "tanh": mpmath.tanh,
            "expm1": mpmath.expm1,
            "sinh": mpmath.sinh,
            "cosh": mpmath.cosh,
        }[name](mpmath.mpf(v))
        expected = float(mpmath.log10(abs(exact))) if exact else -np.inf
    found = OPERATIONS[name](wf.wide(v))
    # exp carries the rounding of its argument: one unit in the last place of v, in nats
    assert size(found) == pytest.approx(expected, abs=1e-13 + 1e-15 * abs(v))
    assert np.sign(found.mantissa) == (mpmath.sign(exact) if exact else 0)


def test_the_slope_of_the_naive_sigmoid_is_known_at_any_argument():
    """s^2 e^-v, which float64 has as 0 inf from v = -710 on, is e^v there."""
    v = wf.wide(np.array([-95.0, -1e4, -1e300]))
    e = wf.exponential(wf.negative(v))
    s = wf.reciprocal(wf.add(wf.wide(1.0), e))
    slope = wf.multiply(wf.multiply(s, s), e)
    np.testing.assert_allclose(slope.log10_size(), v.to_float64() / LN10, rtol=1e-12)
    assert slope.to_float64()[0] == pytest.approx(5.5210822770285325e-42, rel=1e-12)


def test_a_matrix_product_beyond_the_range_adds_and_cancels():
    """[a a] [b; b] = 2ab and [a -a] [b; b] = 0 at a b = 10^400."""
    big = wf.wide(np.full((1, 2), 1e200))
    signed = wf.wide(np.array([[1e200, -1e200]]))
    column = wf.wide(np.full((2, 1), 1e200))
    assert size(wf.matrix_product(big, column)[0, 0]) == pytest.approx(400 + np.log10(2))
    assert wf.matrix_product(signed, column).to_float64() == 0.0


def test_powers_and_logarithms_come_back():
    """(x^-1/2)^2 x = 1 and ln e^x = x for x far out of float64's range."""
    x = wf.exponential(wf.wide(1e5))
    root = wf.power(x, -0.5)
    assert wf.multiply(wf.multiply(root, root), x).to_float64() == pytest.approx(1.0, rel=1e-12)
    assert wf.logarithm(x).to_float64() == pytest.approx(1e5, rel=1e-14)


def test_what_is_not_defined_is_not_known():
    """0/0 and the root of -1 have no size and fit nowhere; 1/0 is infinite and fits nowhere."""
    zero, one = wf.wide(0.0), wf.wide(1.0)
    for value in (wf.divide(zero, zero), wf.power(wf.negative(one), 0.5)):
        assert np.isnan(value.log10_size())
        assert not value.fits(np.inf)
    assert wf.reciprocal(zero).to_float64() == np.inf
    assert not wf.reciprocal(zero).fits(np.inf)


def test_zero_times_anything_known_is_zero():
    """Also times e^(largest), of which float64 makes 0 inf = nan."""
    product = wf.multiply(wf.wide(0.0), wf.exponential(wf.wide(LARGEST)))
    assert product.to_float64() == 0.0
    assert product.log10_size() == -np.inf
