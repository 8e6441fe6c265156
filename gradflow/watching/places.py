"""Where a module's cells stand, and whether a gradient came to their last states from outside."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from gradflow.watching.call_flow import CallFlow
from gradflow.watching.capture.call import Call
from gradflow.watching.capture.modules import WatchedModule
from gradflow.watching.flow_layers import CellPlace
from gradflow.watching.flow_sums import Entering

_NAMES = ("h", "c")
_ROUNDINGS = 64.0


def part_names(watched: WatchedModule, call: Call) -> tuple[str, ...]:
    """Return the names of a call's states: those that the cell tells, else h and c."""
    count = len(call.final)
    told = watched.form.parts if watched.form is not None else _NAMES[:count]
    return told if len(told) == count else tuple(f"s{index}" for index in range(count))


def cell_places(
    watched: WatchedModule, *, parts: tuple[str, ...], widths: tuple[int, ...], dtype: str
) -> list[CellPlace]:
    """Return the places of a module's cells, in torch's order.

    Args:
        watched: the module.
        parts, widths: names and widths of its states' parts.
        dtype: what it computes in.
    """
    module = watched.module
    levels = module.num_layers if isinstance(module, nn.RNNBase) else 1
    told = getattr(module, "hidden_size", None)
    hidden = told if isinstance(told, int) else widths[-1]
    return [
        CellPlace(
            name=watched.name,
            kind=watched.kind,
            layer=level,
            direction=direction,
            hidden_size=hidden,
            parts=parts,
            dtype=dtype,
            has_twin=watched.torchs_own is not None,
        )
        for level in range(levels)
        for direction in ("forward", "reverse")[: watched.directions]
    ]


def entering_of(cell: int, directions: int, eps: float) -> Entering:
    """Return what tells whether a gradient came to a cell's last state from outside its run.

    Within a run the gradient at a call's last state holds what the next call hands back; what is
    more than that, beyond rounding, came from outside. What came to a level above counts too, as
    it is outside for the levels below.

    Args:
        cell: which of the module's cells.
        directions: how many ways the module reads.
        eps: the relative rounding of what the training computes in.
    """

    def entering(found: Sequence[CallFlow], following: Sequence[CallFlow] | None) -> bool | None:
        above = (cell // directions + 1) * directions
        answers = [
            _is_more(found[index], None if following is None else following[index], eps)
            for index in (cell, *range(above, len(found)))
        ]
        if True in answers:
            return True
        return None if None in answers else False

    return entering


def _is_more(flow: CallFlow, following: CallFlow | None, eps: float) -> bool | None:
    came = [part for part in flow.final if part is not None]
    if following is None:
        return any(bool(part.any()) for part in came)
    if following.start is None:
        return None
    pairs = zip(flow.final, following.start, strict=True)
    rounding = _ROUNDINGS * eps * flow.size
    return any(
        float(torch.linalg.vector_norm(part - back)) > rounding
        for part, back in pairs
        if part is not None
    )
