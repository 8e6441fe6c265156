"""The true value beside every number: float64's where that holds, the right one where not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gradflow.engine.finiteness.shadow import Shadow, overflow_limit
from gradflow.engine.finiteness.truth import plain
from tests import cases

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def states_and_gradients(module: nn.Module, xs: Tensor, state: list[Tensor]) -> list[Tensor]:
    """Return every h of an unrolled run, and the gradients of their mean."""
    leaves = [part.detach().clone().requires_grad_() for part in state]
    parts, outputs = tuple(leaves), []
    for x in xs:
        new = module(x, parts if len(parts) > 1 else parts[0])
        parts = new if isinstance(new, tuple) else (new,)
        outputs.append(parts[0])
    mean = torch.stack(outputs).mean()
    return [*outputs, *torch.autograd.grad(mean, [*leaves, *module.parameters()])]


@cases.each_kind
@each_dtype
def test_every_number_of_a_cell_has_the_value_that_float64_gives_it(kind: str, dtype: torch.dtype):
    """Forward and backward in any dtype: the shadow is the float64 run of the same weights."""
    subject = cases.random_subject(kind, cases.Setup(dtype=dtype))
    with Shadow(dtype) as shadow:
        found = states_and_gradients(subject.module, subject.inputs, list(subject.state))
    assert shadow.lost is None
    twin = subject.module.double()
    state = [part.double() for part in subject.state]
    expected = states_and_gradients(twin, subject.inputs.double(), state)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            shadow.true_value(one).to_float64(), plain(other), rtol=1e-11, atol=1e-15
        )


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x.t().contiguous()[1:, :2].clone(),
        lambda x: torch.cat([x, 2 * x], dim=1).chunk(2, dim=1)[1],
        lambda x: torch.stack([x, -x]).flip(0).sum(dim=0, keepdim=True),
        lambda x: torch.where(x > 0, x, x.exp()) / x.abs().max(),
        lambda x: nn.functional.layer_norm(x, (3,)),
        lambda x: torch.softmax(x, dim=1) + nn.functional.softplus(x),
        lambda x: torch.zeros_like(x).index_copy(0, torch.tensor([1]), x[:1]),
        lambda x: x.expand(4, 2, 3)[::2].mean(dim=(0, 2)),
        lambda x: x.pow(3) - x.square().rsqrt() + x.clamp(-0.5, 0.5) + torch.lerp(x, 2 * x, 0.3),
    ],
)
def test_views_moves_and_functions_are_followed(compute: Callable[[Tensor], Tensor]):
    """Whatever is computed from ordinary numbers is its own true value, and so is its gradient."""
    x = torch.tensor([[0.3, -1.2, 2.0], [0.7, 0.1, -0.4]], dtype=torch.float64, requires_grad=True)
    with Shadow(torch.float64) as shadow:
        result = compute(x)
        (gradient,) = torch.autograd.grad(result.sum(), x)
    assert shadow.lost is None
    for tensor in (result, gradient):
        np.testing.assert_allclose(
            shadow.true_value(tensor).to_float64(), plain(tensor), rtol=1e-13, atol=1e-15
        )


def test_writes_in_place_reach_every_view():
    """A row that is written through a view is written in the whole."""
    with Shadow(torch.float32) as shadow:
        whole = torch.full((2, 3), 100.0)
        whole[1].exp_()
        whole[:, 0] += 1
    expected = [[101.0, 100.0, 100.0], [np.exp(100.0) + 1, np.exp(100.0), np.exp(100.0)]]
    assert torch.isinf(whole[1]).all()
    np.testing.assert_allclose(shadow.true_value(whole).to_float64(), expected, rtol=1e-13)


def test_an_overflow_inside_leaves_the_true_gradient_known():
    """d/dv 1/(1 + e^-v) at -95 is 5.52e-42, where float32's autograd says nan."""
    v = torch.tensor([-95.0], requires_grad=True)
    with Shadow(torch.float32) as shadow:
        (gradient,) = torch.autograd.grad(1 / (1 + torch.exp(-v)), v)
    assert torch.isnan(gradient)
    assert shadow.true_value(gradient).to_float64() == pytest.approx(5.5210822770285325e-42)
    assert shadow.first_broken == "exp"


def test_a_normalisation_of_numbers_whose_squares_overflow_is_known():
    """(-5a, a, a, a, a, a) is (-sqrt 5, 1/sqrt 5, ...) after normalisation, at a = 1e300 too."""
    x = torch.tensor([[-5e300, *[1e300] * 5]], dtype=torch.float64)
    with Shadow(torch.float64) as shadow:
        result = nn.functional.layer_norm(x, (6,))
    assert shadow.lost is None
    expected = [[-np.sqrt(5.0), *[1 / np.sqrt(5.0)] * 5]]
    np.testing.assert_allclose(shadow.true_value(result).to_float64(), expected, rtol=1e-12)


def test_a_product_that_must_overflow_is_told_from_one_whose_terms_do_not_fit_by_an_exponential():
    """W x of what fits is honest; W e^v of what does not fit is the cell's own affair."""
    weight = torch.full((1, 2), 2.0)
    with Shadow(torch.float32) as honest:
        torch.mm(weight, torch.full((2, 1), 3e38))
    with Shadow(torch.float32) as own:
        torch.mm(weight, torch.full((2, 1), 200.0).exp())
    assert honest.honest_overflow == "mm"
    assert own.honest_overflow is None


def test_an_operation_beyond_float64_that_nobody_knows_is_named():
    """erf of e^1000 cannot be had from float64: the shadow says where it lost the way."""
    with Shadow(torch.float64) as shadow:
        torch.erf(torch.tensor([1000.0], dtype=torch.float64).exp())
    assert shadow.lost == "erf"


def test_float64_has_no_number_that_shows_its_limit():
    """Half a unit above the largest number is no float64, so any overflow is one already."""
    assert overflow_limit(torch.float64) == np.inf


@pytest.mark.parametrize("dtype", DTYPES[:-1], ids=str)
def test_the_limit_is_where_rounding_gives_infinity(dtype: torch.dtype):
    """Half a unit above the largest number."""
    limit = overflow_limit(dtype)
    # torch rounds to half precision by way of float32: a millionth is enough for both
    below = torch.tensor([limit, limit * (1 - 1e-6)], dtype=torch.float64)
    assert torch.isinf(below.to(dtype)).tolist() == [True, False]
