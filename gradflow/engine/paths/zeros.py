"""Why a path's norm is zero: no entry leads along it, or a number on the way was too small."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from gradflow.cells.shapes import State
from gradflow.engine.paths.products import PathPlaces, PathProducts
from gradflow.engine.paths.steps import PathSteps
from gradflow.engine.points import points_within
from gradflow.engine.trajectory import run_in_chunks
from gradflow.engine.zeros import ZeroReason

Reasons = tuple[ZeroReason | None, ...]


def path_zero_reasons(
    steps: PathSteps,
    x: Tensor,
    state: State,
    *,
    places: PathPlaces,
    points: Tensor,
    found: Mapping[str, Tensor],
) -> dict[str, Reasons]:
    """Return for each path, and each batch row, why its norm is zero, or None where it never is.

    The run is repeated up to the first zeros with the patterns of the step Jacobians, every gate
    and slope open: a path that is zero even then is "exact", any other "underflow". A cell without
    a closed form is asked for its slopes as they are, so all its zeros read as exact.
    """
    firsts = {name: _first_zeros(points, norms) for name, norms in found.items()}
    wanted = torch.cat([*firsts.values()]).unique()
    wanted = wanted[wanted > 0]
    open_norms = _open_norms(steps, x, state, places, wanted) if len(wanted) else {}
    return {
        name: tuple(
            _reason(int(first), row, wanted, open_norms.get(name))
            for row, first in enumerate(rows.tolist())
        )
        for name, rows in firsts.items()
    }


def _first_zeros(points: Tensor, log_norms: Tensor) -> Tensor:
    """Return the first step at which each row's norm is zero, (batch,); 0 for never."""
    zero = torch.isneginf(log_norms).cpu()
    first = points[zero.int().argmax(dim=0)]
    return torch.where(zero.any(dim=0), first, 0)


def _open_norms(
    steps: PathSteps, x: Tensor, state: State, places: PathPlaces, points: Tensor
) -> dict[str, Tensor]:
    products = PathProducts(places, like=state[0], norm="frobenius")
    run = x[: int(points[-1])]
    for chunk in run_in_chunks(steps.cell, run, state, steps.chunk_length(state, len(run))):
        patterns = steps.take_patterns(chunk.drive, chunk.states)
        if patterns is None:
            return {}
        products.advance(patterns, points_within(points, chunk.start, chunk.steps))
    return products.found(len(points))


def _reason(first: int, row: int, points: Tensor, open_norms: Tensor | None) -> ZeroReason | None:
    if first == 0:
        return None
    if open_norms is None:
        return "exact"
    at = int((points == first).nonzero()[0])
    return "exact" if bool(torch.isneginf(open_norms[at, row])) else "underflow"
