"""Assertions for a user's own tests: does the gradient reach far enough back?"""

from __future__ import annotations

from typing import Any

from torch import nn

from gradflow.experiments.inspect import inspect
from gradflow.records.inspect import InspectResult

__all__ = ["assert_gradient_reaches"]


def assert_gradient_reaches(
    model: nn.Module, batch: Any, lag: int, *, lengths: Any = None, loss: Any = None
) -> InspectResult:
    """Assert that a model's gradient reaches `lag` steps back, and that nothing cuts it.

    Args:
        model, batch, lengths, loss: as in `gradflow.inspect`.
        lag: how far back the gradient must still be a thousandth of what it is at lag 0.

    Returns:
        The inspection, for further assertions.

    Raises:
        AssertionError: it does not reach: the findings, with what to try.

    >>> result = assert_gradient_reaches(nn.GRU(2, 4), None, lag=3)
    >>> result.healthy
    True
    """
    result = inspect(model, batch, lengths=lengths, loss=loss, needs_lag=lag)
    known = [layer.lag[-1] for layer in result.layers if layer.lag]
    shown = max(known, default=0)
    if shown < lag:
        raise AssertionError(
            f"the data have {shown} steps, so nobody can tell whether the gradient reaches lag "
            f"{lag}. Give a longer batch."
        )
    errors = result.worst("error")
    if errors:
        lines = [f"{each.code}: {each.message} Try: {each.advice}" for each in errors]
        raise AssertionError(f"the gradient does not reach lag {lag}.\n" + "\n".join(lines))
    return result
