"""Initializations of all weights; they set every effective bias to 0 (torch's own draws it)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from gradflow.errors import GateValueError
from gradflow.inits.draws import Generator, he, orthogonal, uniform, xavier
from gradflow.inits.places import Place, recurrent_places
from gradflow.inits.report import InitReport, make_report

Maker = Callable[[int, int, Generator], Tensor]


def torch_default_(module: nn.Module, *, generator: Generator = None) -> InitReport:
    """Draw everything uniformly within 1/sqrt(hidden), as torch does when it makes a module.

    Both bias vectors are drawn, so the effective bias has deviation sqrt(2/3) / sqrt(hidden).

    Args:
        module: torch.nn.LSTM, GRU, RNN, one of their cells, or one of gradflow's.
        generator: source of the numbers; torch's global one where None.

    Returns:
        What was set, gate by gate.

    Raises:
        CellLoadError: another kind of module, or weights that are computed.
    """
    places = recurrent_places(module)
    for place in places:
        bound = place.hidden_size**-0.5
        for parameter in _parameters(place):
            size = (parameter.numel(), 1)
            _fill_(parameter, uniform(*size, bound, generator).view_as(parameter))
    return make_report(
        "torch-default", "weights and both biases uniform within 1/sqrt(hidden)", places
    )


def xavier_(module: nn.Module, *, generator: Generator = None) -> InitReport:
    """Draw each gate's own matrices with variance 2 / (fan in + fan out), biases 0.

    Glorot & Bengio (2010), equation 16, for every gate by itself: applied to the stacked matrix of
    an LSTM, fan out would be 4 H, and every gate's weights smaller by sqrt(2.5).

    Args, returns, raises: as in `torch_default_`.
    """
    places = _fill_by_gate(module, xavier, xavier, generator)
    return make_report("xavier", f"Xavier uniform, gate by gate; {_bias_words(places)}", places)


def he_(module: nn.Module, *, generator: Generator = None) -> InitReport:
    """Draw every weight from a normal of variance 2 / fan in, biases 0 (He et al. 2015).

    Meant for relu; the recurrent block then has spectral radius near sqrt(2).

    Args, returns, raises: as in `torch_default_`.
    """
    places = _fill_by_gate(module, he, he, generator)
    return make_report("he", f"He normal, variance 2 / fan in; {_bias_words(places)}", places)


def orthogonal_per_gate_(
    module: nn.Module, gain: float = 1.0, *, generator: Generator = None
) -> InitReport:
    """Make each gate's recurrent block `gain` times a random orthogonal matrix of its own.

    Input weights are Xavier, biases 0. Saxe et al. (2014). Under a projection a block is (hidden,
    projection), with orthonormal columns.

    Args:
        module, generator: as in `torch_default_`.
        gain: what every singular value becomes.

    Returns, raises: as in `torch_default_`; GateValueError for a gain that is not finite.
    """
    _require_scale("gain", gain)
    places = _fill_by_gate(module, partial(_scaled, orthogonal, gain), xavier, generator)
    what = f"recurrent: {_times(gain)}a random orthogonal matrix for each gate; input: Xavier"
    return make_report(
        _named("orthogonal-per-gate", gain, 1.0),
        f"{what}; {_bias_words(places)}",
        places,
    )


def orthogonal_stacked_(
    module: nn.Module, gain: float = 1.0, *, generator: Generator = None
) -> InitReport:
    """Make the *stacked* recurrent matrix orthonormal in its columns, as `orthogonal_` on it does.

    What many scripts do, and not the same: the squared singular values of the gates' blocks add
    up to the identity, so they average 1/4 (LSTM) or 1/3 (GRU), and each gate only half keeps a
    vector's length. Input weights are Xavier, biases 0.

    Args, returns, raises: as in `orthogonal_per_gate_`.
    """
    _require_scale("gain", gain)
    places = _fill_by_gate(module, None, xavier, generator)
    for place in places:
        _make_(place.weight_hh, partial(_scaled, orthogonal, gain), generator)
    share = f"each gate's squared singular values average {_times(gain**2)}1/{len(places[0].roles)}"
    return make_report(
        _named("orthogonal-stacked", gain, 1.0),
        f"recurrent: {_times(gain)}one orthonormal matrix for all gates; input: Xavier; "
        f"{_bias_words(places)}",
        places,
        notes=() if len(places[0].roles) == 1 else (share,),
    )


def scaled_identity_(
    module: nn.Module, scale: float = 0.95, *, generator: Generator = None
) -> InitReport:
    """Make each gate's recurrent block `scale` times the identity.

    After Le, Jaitly & Hinton (2015), who did so for a relu RNN with scale 1. Input weights are
    Xavier, biases 0. Under a projection a block is (hidden, projection): ones on its diagonal.

    Args:
        module, generator: as in `torch_default_`.
        scale: the value on the diagonal.

    Returns, raises: as in `torch_default_`; GateValueError for a scale that is not finite.
    """
    _require_scale("scale", scale)
    places = _fill_by_gate(module, partial(_scaled, _identity, scale), xavier, generator)
    return make_report(
        _named("scaled-identity", scale, None),
        f"recurrent: {scale:g} times the identity for each gate; input: Xavier; "
        f"{_bias_words(places)}",
        places,
    )


def _fill_by_gate(
    module: nn.Module, recurrent: Maker | None, other: Maker, generator: Generator
) -> Sequence[Place]:
    """Fill every gate's blocks, and biases with 0; `recurrent` None leaves weight_hh as it is."""
    places = recurrent_places(module)
    for place in places:
        for gate, _ in place.roles:
            _make_(place.input_weight(gate), other, generator)
            if recurrent is not None:
                _make_(place.recurrent_weight(gate), recurrent, generator)
        if place.weight_hr is not None:
            _make_(place.weight_hr, recurrent or orthogonal, generator)
        for bias in (place.bias_ih, place.bias_hh):
            if bias is not None:
                _fill_(bias, torch.zeros_like(bias))
    return places


def _bias_words(places: Sequence[Place]) -> str:
    return "no bias to set" if places[0].bias_ih is None else "every effective bias 0"


def _parameters(place: Place) -> list[nn.Parameter]:
    found = [place.weight_ih, place.weight_hh, place.bias_ih, place.bias_hh, place.weight_hr]
    return [parameter for parameter in found if parameter is not None]


def _make_(target: Tensor, maker: Maker, generator: Generator) -> None:
    rows, columns = target.shape
    _fill_(target, maker(rows, columns, generator))


@torch.no_grad()
def _fill_(target: Tensor, values: Tensor) -> None:
    target.copy_(values)


def _scaled(maker: Maker, scale: float, rows: int, columns: int, generator: Generator) -> Tensor:
    return scale * maker(rows, columns, generator)


def _identity(rows: int, columns: int, generator: Generator) -> Tensor:  # noqa: ARG001 - a Maker
    return torch.eye(rows, columns, dtype=torch.float64)


def _require_scale(name: str, value: float) -> None:
    if not math.isfinite(value):
        raise GateValueError(f"{name} multiplies a matrix, so it is a finite number; got {value}.")


def _times(factor: float) -> str:
    return "" if factor == 1.0 else f"{factor:g} times "


def _named(name: str, number: float, usual: float | None) -> str:
    return name if number == usual else f"{name}:{number:g}"
