"""Holding gates near constants, the experiment of every course on LSTM and GRU.

A held gate has its pre-activation at logit(value) whatever the input and the state are: one bias
carries the logit, torch's second bias and all the gate's weights are zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import TypeVar

import torch
from torch import Tensor, nn

from gradflow.cells.declared_gates import declared_gates
from gradflow.cells.gates import Gate, Rows
from gradflow.cells.protocol import CellLike
from gradflow.errors import CellLoadError, GateValueError, UnknownNameError, nearest_name

CellT = TypeVar("CellT", bound=nn.Module)
NORMAL_REACH = 16.0  # standard deviations; no normal number is ever drawn further out


def hold_(
    cell: CellT,
    /,
    *,
    candidate_gain: float = 0.0,
    gate_weights: float = 0.0,
    generator: torch.Generator | None = None,
    **gates: float,
) -> CellT:
    """Hold gates of a cell near constants, in place; everything not held is zeroed.

    Args:
        cell: a built-in cell, or a user's cell that declares its gates (the module itself or the
            `ForeignCell` around it). All members of an ensemble are held alike; hold the members
            first, then stack them, where they should differ.
        candidate_gain: the candidate's recurrent matrix becomes a random orthogonal one times
            this; 0 leaves it off.
        gate_weights: standard deviation of small random weights for the held gates; 0 holds them
            exactly.
        generator: source of the random matrices; torch's global one where None.
        **gates: value of each gate by name, strictly between 0 and 1 (`forget=0.9`). A gate that
            is not named gets zero weights and bias, hence the value 0.5.

    Returns:
        The same cell. Where an error is raised, the cell is as it was.

    Raises:
        GateValueError: a value outside (0, 1), one that the dtype rounds to 0 or 1, a gate that
            has no bias to carry it, a gain that is not finite.
        UnknownNameError: the cell has no such gate.
        CellLoadError: a user's declaration of gates that does not fit its parameters.

    >>> from gradflow.cells import LSTM
    >>> cell = hold_(LSTM(1, 2).double(), forget=0.9)
    >>> step = cell.step(torch.ones(1, 1).double(), cell.initial_state(1))
    >>> round(step["forget"][0, 0].item(), 12), step["input"][0, 0].item()
    (0.9, 0.5)
    """
    if not isinstance(cell, nn.Module):
        raise CellLoadError(
            f"hold_ sets the parameters of a cell, a torch.nn.Module; got a {type(cell).__name__}."
        )
    known = _all_gates(cell)
    candidate = next((gate for gate in known.values() if gate.role == "candidate"), None)
    for scaled, scale in (("candidate_gain", candidate_gain), ("gate_weights", gate_weights)):
        require_scale(scaled, scale)
        _require_room(scaled, scale, cell)
    _require_holdable(cell, known, gates)
    recurrent = _recurrent_rows(cell, candidate, candidate_gain)
    with torch.no_grad():
        for parameter in cell.parameters():
            if parameter.is_floating_point():
                parameter.zero_()
        for name, value in gates.items():
            known[name].bias[0].bias_of(cell).fill_(logit(value))
            for rows in known[name].weights:
                # drawn at scale 0 too: one seed gives one candidate matrix for every scale
                weight = rows.weight_of(cell)
                weight.copy_(gate_weights * _normal(weight.shape, weight, generator))
        if recurrent is not None:
            weight = recurrent.weight_of(cell)
            matrix = orthogonal_matrix(weight.shape[-1], like=weight, generator=generator)
            weight.copy_(candidate_gain * matrix)
    return cell


def require_gate_value(name: str, value: object) -> None:
    """Raise unless a sigmoid can take this value."""
    if not 0.0 < _as_float(value) < 1.0:
        raise GateValueError(
            f"gate {name!r} must lie strictly between 0 and 1, because a sigmoid never reaches "
            f"either end; got {value}. Use 0.999 for an almost open gate."
        )


def require_scale(name: str, value: object) -> None:
    """Raise unless the value is a finite number that is not negative."""
    if not 0.0 <= _as_float(value) < math.inf:
        raise GateValueError(
            f"{name} scales random weights, so it is a finite number of 0 or more; got {value}."
        )


def _require_room(name: str, scale: float, cell: nn.Module) -> None:
    """Raise where weights of this scale do not fit the cell's dtype."""
    for parameter in cell.parameters():
        if not parameter.is_floating_point():
            continue
        largest = torch.finfo(parameter.dtype).max / NORMAL_REACH
        if scale > largest:
            raise GateValueError(
                f"{name} {scale:g} makes weights that {parameter.dtype} cannot hold, whose largest "
                f"number is {torch.finfo(parameter.dtype).max:.3g}. Use {largest:.1g} or less."
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
    gaussian = torch.randn(size, size, dtype=torch.float64, generator=generator, device="cpu")
    q, r = torch.linalg.qr(gaussian)
    haar: Tensor = q * torch.sign(r.diagonal())
    return haar.to(dtype=like.dtype, device=like.device)


def _as_float(value: object) -> float:
    """Return a number as a float, infinite where it is too large for one; NaN for no number."""
    try:
        return float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        return math.inf


def _all_gates(cell: nn.Module) -> dict[str, Gate]:
    """Return every gate by name, the candidate among them."""
    if isinstance(cell, CellLike):
        gates = (*cell.gates, *([cell.candidate_gate] if cell.candidate_gate else []))
    else:
        gates = declared_gates(cell)
    return {gate.name: gate for gate in gates}


def _require_holdable(
    cell: nn.Module, known: Mapping[str, Gate], values: Mapping[str, float]
) -> None:
    """Raise unless the cell has all these gates, each with a bias that can carry its value."""
    kind = getattr(cell, "kind", type(cell).__name__)
    names = [name for name, gate in known.items() if gate.role != "candidate"]
    for name, value in values.items():
        if name not in names:
            declare = nearest_name(name, names) if names else "It declares no gates."
            raise UnknownNameError(f"the {kind} has no gate {name!r} to hold. {declare}")
        require_gate_value(name, value)
        if not known[name].bias:
            raise GateValueError(
                f"gate {name!r} has no bias to hold it at {value}: the {kind} was made with "
                "bias=False, or declares none. Make it with a bias."
            )
        dtype = known[name].bias[0].bias_of(cell).dtype
        held = torch.sigmoid(torch.tensor(logit(value), dtype=dtype, device="cpu")).item()
        # subnormal gates may be flushed to 0 on the way, as the engine asks for
        smallest = torch.finfo(dtype).tiny if dtype in (torch.float32, torch.float64) else 0.0
        if held in (0.0, 1.0) or held < smallest:
            raise GateValueError(
                f"gate {name!r} cannot be held at {value} in {dtype}, which rounds it to "
                f"{1.0 if held == 1.0 else 0.0}. "
                "Use a value further from the end, or dtype float64."
            )


def _recurrent_rows(cell: nn.Module, candidate: Gate | None, gain: float) -> Rows | None:
    """Return where the candidate's recurrent matrix is, or None at gain 0."""
    if gain == 0.0:
        return None
    if candidate is None or candidate.recurrent is None:
        raise GateValueError(
            f"the {getattr(cell, 'kind', type(cell).__name__)} does not say which weights carry "
            f"its candidate's recurrence, so candidate_gain {gain} cannot be set. Declare a gate "
            "of role 'candidate' with its 'recurrent' rows and columns, or use candidate_gain 0."
        )
    return candidate.recurrent


def _normal(shape: torch.Size, like: Tensor, generator: torch.Generator | None) -> Tensor:
    drawn = torch.randn(shape, dtype=torch.float64, generator=generator, device="cpu")
    return drawn.to(dtype=like.dtype, device=like.device)
