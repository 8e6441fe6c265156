"""Somebody else's loggers as receivers of samples, told apart by what they can do.

Nothing is imported for them: an object that has `add_scalar` is TensorBoard-like, one that has
`log_metrics` mlflow- or Lightning-like, one that has `log` wandb- or trackio-like.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

from gradflow.errors import SettingError
from gradflow.records.watch import FlowSample
from gradflow.watching.scalars import scalars_of

Sink = Callable[[FlowSample], None]
UPDATE = "gradflow/update"


def sink_of(receiver: Any) -> Sink:
    """Return a function that sends each sample to `receiver`.

    Args:
        receiver: a SummaryWriter of torch or of tensorboardX (`add_scalar`); mlflow or a logger of
            Lightning (`log_metrics`); wandb, a run of it, trackio (`log`); or a function that
            takes a FlowSample.

    Raises:
        SettingError: it can do none of that.

    >>> received = []
    >>> sink_of(received.append)(FlowSample(7, (), log10_parameter_gradient_norm=-1.0))
    >>> received[0].update
    7
    """
    for method, send in (
        ("add_scalar", _add_scalars),
        ("log_metrics", _log_metrics),
        ("log", _log),
    ):
        if callable(getattr(receiver, method, None)):
            return lambda sample: send(receiver, sample.update, scalars_of(sample))
    if callable(receiver):
        return cast("Sink", receiver)
    raise SettingError(
        "a sink has add_scalar (a SummaryWriter), log_metrics (mlflow) or log (wandb, trackio), or "
        f"is a function of a sample; got {type(receiver).__name__}. Give the writer or run itself."
    )


def _add_scalars(writer: Any, update: int, values: Mapping[str, float]) -> None:
    for name, value in values.items():
        writer.add_scalar(name, value, update)


def _log_metrics(logger: Any, update: int, values: Mapping[str, float]) -> None:
    logger.log_metrics(dict(values), step=update)


def _log(run: Any, update: int, values: Mapping[str, float]) -> None:
    """Log in one call, so that all numbers of a sample stand together.

    wandb drops what comes with a step below its own counter, and counts a call without one as a
    step. So there the numbers join the user's next `log`, and say themselves which update they
    are of.
    """
    known = _parameters(run.log)
    if "commit" in known:
        run.log({UPDATE: update, **values}, commit=False)
    elif "step" in known:
        run.log(dict(values), step=update)
    else:
        run.log({UPDATE: update, **values})


def _parameters(function: Callable[..., Any]) -> frozenset[str]:
    try:
        return frozenset(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # a function in C may not tell
        return frozenset()
