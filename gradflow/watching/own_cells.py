"""Gates of cells without a twin, asked of the cell itself: gradflow's, and a user's that tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from gradflow.cells import Cell, ForeignCell
from gradflow.cells.foreign_gates import call_gate_values
from gradflow.errors import GradflowError
from gradflow.watching.capture.call import Call
from gradflow.watching.capture.modules import WatchedModule
from gradflow.watching.twin.gates import gate_rows


def gates_as_trained(watched: WatchedModule, calls: Sequence[Call]) -> list[Mapping[str, Tensor]]:
    """Return each call's gates as sums by row (see `gate_rows`); empty where the cell tells none.

    All calls are asked at once, without a graph, and no random number of the training is used up.
    """
    told = [call for call in calls if call.start]
    if not told or (isinstance(watched.form, ForeignCell) and not watched.form.gates):
        return [{} for _ in calls]
    x = torch.cat([_rows(call.x) for call in told])
    state = tuple(
        torch.cat(list(map(_rows, parts)))
        for parts in zip(*(call.start for call in told), strict=True)
    )
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        values = _values(watched, x, state)
    sums = gate_rows({name: each.unsqueeze(0) for name, each in values.items()}, None)
    counts = [len(_rows(call.x)) if call.start else 0 for call in calls]
    shares = {name: rows.split(counts) for name, rows in sums.items()}
    return [
        {name: share[index] for name, share in shares.items()} if counts[index] else {}
        for index in range(len(calls))
    ]


def _values(watched: WatchedModule, x: Tensor, state: tuple[Tensor, ...]) -> Mapping[str, Tensor]:
    form = watched.form
    if isinstance(form, Cell):
        return form.compute(form.drive(x), state).gates
    if not isinstance(form, ForeignCell):
        return {}
    gates = {gate.name for gate in form.gates}
    module = form.module if watched.module is form else watched.module
    try:
        shown = call_gate_values(module, form.form, x, state)
    except GradflowError:
        return {}
    return {name: value for name, value in shown.items() if name in gates}


def _rows(values: Tensor) -> Tensor:
    return values.reshape(-1, values.shape[-1])
