"""The subjects of `decay`: cells with their gates held, one for each curve."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import torch

from gradflow.cells import CellLike, Gate, State, hold_
from gradflow.cells.base import Cell
from gradflow.checkpoints.user_cells import load_cell
from gradflow.config import DecaySettings, InitsSettings
from gradflow.errors import DtypeError, GateValueError, UnknownNameError, nearest_name


@dataclass(frozen=True)
class HeldCell:
    """A cell under measurement, and how it was held; None where it was left as it is."""

    name: str
    cell: CellLike
    gate_name: str | None
    gate_value: float | None
    candidate_gain: float | None

    @property
    def can_be_stacked(self) -> bool:
        """True for a built-in cell, which may share a batched run with its like."""
        return isinstance(self.cell, Cell)


def held_cells(name: str, settings: DecaySettings) -> Iterator[HeldCell]:
    """Yield the cells of one `--cell`, gain by gain, gate value by gate value.

    A plain RNN has no gate: each `--gate` is the gain of its orthogonal recurrent matrix. A user's
    cell without a keep gate is measured as it is, once.
    """
    first = _load(name, settings)
    keep = keep_gate(first)
    if keep is None:
        if name == "rnn":
            for gain in settings.gate:
                yield HeldCell(
                    name, _hold(_load(name, settings), settings, gain, {}), None, None, gain
                )
        else:
            yield HeldCell(name, first, None, None, None)
        return
    for gain in _gains(first, settings):
        for value in settings.gate:
            values = gate_values(first, value, settings)
            cell = _hold(_load(name, settings), settings, gain, values)
            yield HeldCell(name, cell, keep.name, value, gain)


def keep_gate(cell: CellLike) -> Gate | None:
    """Return the gate whose product over time is the direct path, where the cell has one."""
    return next((gate for gate in cell.gates if gate.role == "keep"), None)


def gate_values(
    cell: CellLike, keep_value: float | None, settings: DecaySettings
) -> dict[str, float]:
    """Return the value of each gate by name; none where there is no keep gate to hold."""
    if keep_value is None:
        return {}
    return {gate.name: _value_of(gate, keep_value, settings) for gate in cell.gates}


def gains_left_out(cell: CellLike, settings: DecaySettings) -> tuple[float, ...]:
    """Return the candidate gains asked for that the cell gives no place to.

    A cell that does not tell its candidate's recurrent weights can have its gates held with the
    candidate off, which is half of the experiment; the live half is left out, and said so.
    """
    candidate = cell.candidate_gate
    if keep_gate(cell) is None or (candidate is not None and candidate.recurrent is not None):
        return ()
    return tuple(gain for gain in settings.candidate_gain if gain != 0.0)


def _gains(cell: CellLike, settings: DecaySettings) -> tuple[float, ...]:
    left_out = gains_left_out(cell, settings)
    gains = tuple(gain for gain in settings.candidate_gain if gain not in left_out)
    return gains or settings.candidate_gain  # live gains alone: `hold_` refuses them, in words


def start_state(cell: CellLike, settings: DecaySettings | InitsSettings) -> State:
    """Return the state before the first step: zeros, or drawn from the seed.

    A hidden state h is drawn as tanh of a standard normal (it lies in (-1, 1), as a gated h
    does), every other part as a standard normal. The same seed gives every cell the same h.
    """
    zeros = cell.initial_state(1)
    if settings.start == "zero":
        return zeros
    generator = torch.Generator().manual_seed(settings.seed)
    drawn = [torch.randn(part.shape, dtype=torch.float64, generator=generator) for part in zeros]
    bounded = [
        torch.tanh(values) if name == "h" else values
        for name, values in zip(cell.parts, drawn, strict=True)
    ]
    return tuple(values.to(part) for values, part in zip(bounded, zeros, strict=True))


def require_device(name: str, dtype: torch.dtype) -> torch.device:
    """Return the device, after trying it in this dtype.

    Raises:
        UnknownNameError: torch does not know or does not reach it.
        DtypeError: it cannot compute in the dtype.
    """
    reachable = ["cpu"]
    reachable += ["cuda"] if torch.cuda.is_available() else []
    reachable += ["mps"] if torch.backends.mps.is_available() else []
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UnknownNameError(
            f"--device {name!r} is no device that torch knows. {nearest_name(name, reachable)}"
        ) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of old names, which the error below names too
            torch.zeros(1, device=device).sum().item()
    except Exception as error:
        raise UnknownNameError(
            f"--device {name!r} is not to be had on this machine ({_first_line(error)}). "
            f"Reachable: {', '.join(reachable)}."
        ) from None
    try:
        torch.ones(2, 2, dtype=dtype, device=device).mm(
            torch.ones(2, 2, dtype=dtype, device=device)
        )
    except Exception as error:
        raise DtypeError(
            f"--device {name} cannot compute in {dtype} ({_first_line(error)}). "
            "Use --dtype float32 there, or --device cpu."
        ) from None
    return device


def _load(name: str, settings: DecaySettings) -> CellLike:
    dtype = getattr(torch, settings.dtype)
    return load_cell(
        name, 1, settings.hidden, dtype=dtype, device=settings.device, reset=settings.reset
    )


def _hold(
    cell: CellLike, settings: DecaySettings, gain: float, values: dict[str, float]
) -> CellLike:
    # One seed for every curve: they differ by what was asked, not by their random matrices.
    generator = torch.Generator().manual_seed(settings.seed)
    return hold_(
        cast("Cell", cell),  # every cell that loads is a module too, which CellLike does not say
        candidate_gain=gain,
        gate_weights=settings.gate_weights,
        generator=generator,
        **values,
    )


def _value_of(gate: Gate, keep_value: float, settings: DecaySettings) -> float:
    if gate.role == "keep":
        return keep_value
    if gate.role == "write":
        return _write_value(keep_value, settings)
    return settings.output_gate if gate.role == "output" else settings.reset_gate


def _write_value(keep_value: float, settings: DecaySettings) -> float:
    if settings.input_gate != "coupled":
        return float(settings.input_gate)
    if 1.0 - keep_value == 1.0:
        raise GateValueError(
            f"--gate {keep_value:g} couples the input gate to 1 - {keep_value:g}, which rounds to "
            "1, and a sigmoid never reaches it. Give --input-gate a value, such as 0.999."
        )
    return 1.0 - keep_value


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:160] if text else type(error).__name__
