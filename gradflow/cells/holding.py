"""Holding gates near constants, the experiment of every course on LSTM and GRU.

A held gate has its pre-activation at logit(value) whatever the input and the state are: one bias
carries the logit, torch's second bias and all the gate's weights are zero.
"""

from __future__ import annotations

import math
from typing import TypeVar

import torch
from torch import Tensor, nn

from gradflow.cells.gates import Gate, Rows
from gradflow.cells.protocol import CellLike
from gradflow.errors import GateValueError, UnknownNameError, nearest_name

CellT = TypeVar("CellT", bound=nn.Module)


def hold_(
    cell: CellT,
    *,
    candidate_gain: float = 0.0,
    gate_weights: float = 0.0,
    generator: torch.Generator | None = None,
    **gates: float,
) -> CellT:
    """Hold gates of a cell near constants, in place; everything not held is zeroed.

    Args:
        cell: a built-in cell, or a user's cell that declares its gates. An ensemble is refused:
            hold its members, then stack them.
        candidate_gain: the candidate's recurrent matrix becomes a random orthogonal one times
            this; 0 leaves it off.
        gate_weights: standard deviation of small random weights for the held gates; 0 holds them
            exactly.
        generator: source of the random matrices; torch's global one where None.
        **gates: value of each gate by name, strictly between 0 and 1 (`forget=0.9`). A gate that
            is not named gets zero weights and bias, hence the value 0.5.

    Returns:
        The same cell.

    Raises:
        GateValueError: a value outside (0, 1), one that the dtype rounds to 0 or 1, a gate that
            has no bias to carry it, a gain that is not finite.
        UnknownNameError: the cell has no such gate.

    >>> from gradflow.cells import LSTM
    >>> cell = hold_(LSTM(1, 2).double(), forget=0.9)
    >>> step = cell.step(torch.ones(1, 1).double(), cell.initial_state(1))
    >>> round(step["forget"][0, 0].item(), 12), step["input"][0, 0].item()
    (0.9, 0.5)
    """
    known = {gate.name: gate for gate in cell.gates}
    for name, value in gates.items():
        if name not in known:
            raise UnknownNameError(
                f"the {cell.kind} has no gate {name!r} to hold. {nearest_name(name, known)}"
            )
        require_gate_value(name, value)
    require_scale("candidate_gain", candidate_gain)
    require_scale("gate_weights", gate_weights)
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.zero_()
        for name, value in gates.items():
            _hold_gate(cell, known[name], value)
            for rows in known[name].weights:
                weight = rows.weight_of(cell)
                weight.copy_(gate_weights * _normal(weight.shape, weight, generator))
        if candidate_gain != 0.0:
            _set_candidate_gain(cell, candidate_gain, generator)
    return cell


def require_gate_value(name: str, value: float) -> None:
    """Raise unless a sigmoid can take this value."""
    if not (isinstance(value, int | float) and 0.0 < value < 1.0):
        raise GateValueError(
            f"gate {name!r} must lie strictly between 0 and 1, because a sigmoid never reaches "
            f"either end; got {value}. Use 0.999 for an almost open gate."
        )


def require_scale(name: str, value: float) -> None:
    """Raise unless the value is a finite number that is not negative."""
    if not (math.isfinite(value) and value >= 0.0):
        raise GateValueError(
            f"{name} scales random weights, so it is a finite number of 0 or more; got {value}."
        )


def logit(value: float) -> float:
    """Return ln(value / (1 - value)), the pre-activation at which a sigmoid has this value.

    >>> logit(0.5)
    0.0
    """
    return math.log(value) - math.log1p(-value)


def orthogonal_matrix(
    size: int, *, like: Tensor, generator: torch.Generator | None = None
) -> Tensor:
    """Return a random orthogonal (size, size) matrix, uniform over all of them (Haar measure).

    QR of a Gaussian matrix, with the signs of R's diagonal divided out (Mezzadri 2007, section
    5): without that the distribution is not uniform. It is drawn in float64 on the CPU, so that
    one seed gives the same matrix in every dtype and on every device.
    """
    gaussian = torch.randn(size, size, dtype=torch.float64, generator=generator)
    q, r = torch.linalg.qr(gaussian)
    return (q * torch.sign(r.diagonal())).to(dtype=like.dtype, device=like.device)


def _hold_gate(cell: nn.Module, gate: Gate, value: float) -> None:
    if not gate.bias:
        raise GateValueError(
            f"gate {gate.name!r} has no bias to hold it at {value}: the cell was made with "
            "bias=False. Make it with a bias."
        )
    bias = gate.bias[0].bias_of(cell)
    bias.fill_(logit(value))
    held = torch.sigmoid(bias.flatten()[0]).item()
    if held in (0.0, 1.0):
        raise GateValueError(
            f"gate {gate.name!r} cannot be held at {value} in {bias.dtype}, which rounds it to "
            f"{held}. Use a value further from the end, or dtype float64."
        )


def _set_candidate_gain(cell: CellLike, gain: float, generator: torch.Generator | None) -> None:
    candidate = cell.candidate_gate
    recurrent: Rows | None = None if candidate is None else candidate.recurrent
    if recurrent is None:
        raise GateValueError(
            f"the {cell.kind} does not say which weights carry its candidate's recurrence, so "
            f"candidate_gain {gain} cannot be set. Declare a gate of role 'candidate' with its "
            "'recurrent' rows and columns, or use candidate_gain 0."
        )
    weight = recurrent.weight_of(cell)
    weight.copy_(gain * orthogonal_matrix(weight.shape[-1], like=weight, generator=generator))


def _normal(shape: torch.Size, like: Tensor, generator: torch.Generator | None) -> Tensor:
    drawn = torch.randn(shape, dtype=torch.float64, generator=generator)
    return drawn.to(dtype=like.dtype, device=like.device)
