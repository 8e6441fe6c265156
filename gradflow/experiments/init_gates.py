"""How an initialization spreads the gates: over steps, units and draws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from gradflow.cells import State
from gradflow.cells.base import Cell
from gradflow.engine.trajectory import run_in_chunks
from gradflow.inits import Place, recurrent_places
from gradflow.records.base import FloatArray
from gradflow.records.distributions import Distribution
from gradflow.records.inits import GateFlow

_GATE_STEPS = 2000  # of a longer run that many steps, evenly spaced, tell how gates are spread
_CHUNK = 256


def gate_values(cell: Cell, x: Tensor, state: State) -> dict[str, FloatArray]:
    """Return every gate over the run, (steps, draws, units); few steps of a long run."""
    stride = -(-x.shape[0] // _GATE_STEPS)
    found: dict[str, list[Tensor]] = {}
    with torch.no_grad():
        for chunk in run_in_chunks(cell, x, state, _CHUNK * stride):
            states = tuple(part[::stride] for part in chunk.states)
            for name, gate in cell.compute(chunk.drive[::stride], states).gates.items():
                found.setdefault(name, []).append(gate.to("cpu", torch.float64))
    return {name: torch.cat(parts).numpy() for name, parts in found.items()}


def time_constants(keep: FloatArray) -> Distribution:
    """Return the distribution of -1 / ln(f), the steps in which a gate f forgets all but 1/e.

    Infinite where a gate rounds to 1.

    >>> round(time_constants(np.array([math.exp(-0.25)])).mean, 12)
    4.0
    """
    gate = Distribution.of(keep)
    with np.errstate(divide="ignore"):
        mean = float((1.0 / np.abs(np.log(keep))).mean())
    return Distribution(
        mean=mean,
        least=_constant(gate.least),
        greatest=_constant(gate.greatest),
        quantiles=tuple(_constant(value) for value in gate.quantiles),
    )


def _constant(gate: float) -> float:
    return math.inf if gate >= 1.0 else -1.0 / math.log(gate) if gate > 0.0 else 0.0


def gate_flows(cells: Sequence[Cell], values: Mapping[str, FloatArray]) -> tuple[GateFlow, ...]:
    """Return every gate and the candidate: values over the run, biases, recurrent blocks.

    Args:
        cells: the draws of one initialization.
        values: each gate over the run, from `gate_values`.
    """
    places = [place for cell in cells for place in recurrent_places(cell)]
    return tuple(_gate_flow(places, name, role, values.get(name)) for name, role in places[0].roles)


def _gate_flow(
    places: Sequence[Place], name: str, role: str, values: FloatArray | None
) -> GateFlow:
    biases = [bias for place in places if (bias := place.effective_bias(name)) is not None]
    effective = torch.stack(biases)
    blocks = torch.stack([place.recurrent_weight(name).detach() for place in places])
    singular = torch.linalg.svdvals(blocks.to(torch.float64))
    return GateFlow(
        name=name,
        role=role,
        bias=Distribution.of(effective.cpu().numpy()),
        at_rest=None if role == "candidate" else Distribution.of(effective.sigmoid().cpu().numpy()),
        value=None if values is None else Distribution.of(values),
        recurrent_least=singular.min().item(),
        recurrent_greatest=singular.max().item(),
        recurrent_mean_square=singular.square().mean().item(),
    )
