"""Initializations by name, as `gradflow inits --init` takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from gradflow.errors import SettingError
from gradflow.inits.biases import chrono_, forget_bias_, zero_bias_
from gradflow.inits.copied import as_commonly_copied_
from gradflow.inits.draws import Generator
from gradflow.inits.report import InitReport
from gradflow.inits.weights import (
    he_,
    orthogonal_per_gate_,
    orthogonal_stacked_,
    scaled_identity_,
    torch_default_,
    xavier_,
)
from gradflow.settings.schemes import SCHEMES, read_scheme

_WITH_GENERATOR: dict[str, Callable[..., InitReport]] = {
    "torch-default": torch_default_,
    "xavier": xavier_,
    "he": he_,
    "orthogonal-per-gate": orthogonal_per_gate_,
    "orthogonal-stacked": orthogonal_stacked_,
    "scaled-identity": scaled_identity_,
    "chrono": chrono_,
}
_FIXED: dict[str, Callable[..., InitReport]] = {
    "zero-bias": zero_bias_,
    "forget-bias": forget_bias_,
    "as-commonly-copied": as_commonly_copied_,
}


def scheme_names() -> tuple[str, ...]:
    """Return the names that `apply_` knows.

    >>> "chrono" in scheme_names()
    True
    """
    return tuple(SCHEMES)


def apply_(
    module: nn.Module, scheme: str, *, generator: Generator = None
) -> tuple[InitReport, ...]:
    """Apply a scheme by its name, such as "orthogonal-per-gate+forget-bias:1", part by part.

    Args:
        module: as in `torch_default_`.
        scheme: names joined by +, each with its number after a colon where it takes one.
        generator: source of the random numbers; torch's global one where None.

    Returns:
        One report for each part.

    Raises:
        SettingError: a name or number that cannot be.
        GateValueError, CellLoadError: the module cannot have it; see the functions.

    >>> [report.scheme for report in apply_(nn.GRU(2, 3), "xavier+forget-bias:2")]
    ['xavier', 'forget-bias:2']
    """
    try:
        parts = read_scheme(scheme)
    except ValueError as problem:
        raise SettingError(f"the scheme {problem}") from None
    return tuple(_apply(module, name, number, generator) for name, number in parts)


def _apply(module: nn.Module, name: str, number: float | None, generator: Generator) -> InitReport:
    arguments: list[Any] = [] if number is None else [number]
    if name in _FIXED:
        return _FIXED[name](module, *arguments)
    return _WITH_GENERATOR[name](module, *arguments, generator=generator)
