"""Assertions that a user's own tests make of a model."""

from __future__ import annotations

import pytest
import torch

import gradflow
from tests.data.inspected_models import Classifier, Truncated, held_lstm


def draw(*shape: int) -> torch.Tensor:
    """Unit random numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def test_a_gradient_that_reaches_passes_with_the_inspection():
    """Forget gates at 0.99 remember 60 steps."""
    result = gradflow.testing.assert_gradient_reaches(held_lstm(0.99), draw(60, 4, 4), lag=60)
    assert result.healthy


def test_a_gradient_that_does_not_reach_says_what_to_try():
    """Forget gates at 0.1 forget within six."""
    with pytest.raises(AssertionError, match=r"GF101: The horizon .* against 60 needed"):
        gradflow.testing.assert_gradient_reaches(held_lstm(0.1), draw(60, 4, 4), lag=60)


def test_a_cut_fails_too():
    """Exact zeros before a detach."""
    batch = (draw(5, 12, 3), torch.tensor([0, 1, 0, 1, 1]))
    with pytest.raises(AssertionError, match="GF103"):
        gradflow.testing.assert_gradient_reaches(Truncated(6), batch, lag=3)


def test_data_that_are_too_short_prove_nothing():
    """A horizon that was not reached in ten steps is no proof of sixty."""
    with pytest.raises(AssertionError, match="the data have 10 steps"):
        gradflow.testing.assert_gradient_reaches(Classifier(), draw(2, 10, 3), lag=60)
