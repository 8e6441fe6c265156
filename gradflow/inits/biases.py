"""Initializations of biases, by the value that a gate then has: they leave the weights alone."""

from __future__ import annotations

import math

import torch
from torch import nn

from gradflow.errors import GateValueError
from gradflow.inits.draws import Generator, uniform
from gradflow.inits.places import Place, recurrent_places
from gradflow.inits.report import InitReport, make_report


def zero_bias_(module: nn.Module) -> InitReport:
    """Set every bias to 0: every gate is at 1/2 at rest. A module without biases stays as it is.

    Raises:
        CellLoadError: no recurrent module, or parameters that are computed.
    """
    places = recurrent_places(module)
    for place in places:
        for gate, _ in place.roles:
            if place.bias_ih is not None:
                place.set_bias_(gate, 0.0)
    return make_report("zero-bias", "every effective bias 0; weights as they were", places)


def forget_bias_(module: nn.Module, value: float = 1.0) -> InitReport:
    """Set the effective bias of the keep gate: an LSTM's forget gate, a GRU's update gate.

    Gers et al. (2000) and Jozefowicz et al. (2015) start forget gates open. torch adds two bias
    vectors, so setting both to 1 (every tensor named bias, as loops do) makes it 2: here the sum
    is `value`.

    Args:
        module: as in `torch_default_`.
        value: the effective bias; the gate is sigmoid(value) at rest.

    Returns:
        What was set, with the value at rest and its half-life.

    Raises:
        GateValueError: a plain RNN (it has no gate), bias=False, or a value that is not finite.
        CellLoadError: no recurrent module, or parameters that are computed.

    >>> report = forget_bias_(nn.LSTM(3, 4), 1.0)
    >>> round(report.gate("forget").value.mean, 4), round(report.gate("forget").half_life, 2)
    (0.7311, 2.21)
    """
    if not math.isfinite(value):
        raise GateValueError(f"a forget bias must be a finite number; got {value}. Use 1.")
    places = recurrent_places(module)
    for place, gate in _keep_gates(places, "forget_bias_"):
        place.set_bias_(gate, value)
    return make_report(
        f"forget-bias:{value:g}",
        f"effective bias of the keep gate: {value:g}; all else as it was",
        places,
        roles=("keep",),
    )


def chrono_(module: nn.Module, t_max: float, *, generator: Generator = None) -> InitReport:
    """Spread the units' memories up to `t_max` steps: b_f = ln U(1, t_max - 1), b_i = -b_f.

    Tallec & Ollivier (2018), section 2. A forget gate f forgets in about 1 / (1 - f) = 1 + e^b
    steps, so the units' memories at rest are spread evenly from 2 to t_max steps; the mean of f
    at rest is 1 - ln(t_max / 2) / (t_max - 2). A GRU's update gate keeps and writes at once
    (1 - z), so it has no second bias to set. Other biases stay as they are.

    Args:
        module, generator: as in `torch_default_`.
        t_max: the longest memory, in steps, more than 2.

    Returns:
        What was set.

    Raises:
        GateValueError: as in `forget_bias_`; t_max that is not more than 2.
        CellLoadError: no recurrent module, or parameters that are computed.
    """
    if not (math.isfinite(t_max) and t_max > 2.0):
        raise GateValueError(
            f"t_max is the longest memory in steps and must be more than 2, because memories are "
            f"spread from 2 steps to t_max; got {t_max}. Use the length of your sequences."
        )
    places = recurrent_places(module)
    for place, gate in _keep_gates(places, "chrono_"):
        drawn = uniform(place.hidden_size, 1, 1.0, generator).squeeze(1)  # in (-1, 1)
        bias = torch.log(1.0 + (t_max - 2.0) * (drawn + 1.0) / 2.0)
        place.set_bias_(gate, bias)
        for other, role in place.roles:
            if role == "write":
                place.set_bias_(other, -bias)
    return make_report(
        f"chrono:{t_max:g}",
        f"b_keep = ln U(1, {t_max - 1:g}), b_input = -b_keep; all else as it was",
        places,
        roles=("keep", "write"),
    )


def chrono_mean(t_max: float) -> float:
    """Return the expected forget gate at rest, E[U / (1 + U)] with U uniform on (1, t_max - 1).

    >>> round(chrono_mean(100), 6)
    0.960081
    """
    return 1.0 - math.log(t_max / 2.0) / (t_max - 2.0)


def _keep_gates(places: list[Place], function: str) -> list[tuple[Place, str]]:
    """Return each place with its keep gate, all of them before anything is set."""
    found = []
    for place in places:
        gate = place.keep_gate
        if gate is None:
            raise GateValueError(
                f"{function} sets the bias of the gate that keeps, and a plain RNN has none. "
                "Use an initialization of its weights, such as orthogonal_per_gate_."
            )
        if place.bias_ih is None:
            raise GateValueError(
                f"{function} has no bias to set: the module was made with bias=False. "
                "Make it with bias=True."
            )
        found.append((place, gate))
    return found
