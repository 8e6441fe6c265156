"""Gates of cells without a twin, asked of the cell itself: gradflow's, and a user's that tells."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from gradflow.cells import Cell, ForeignCell
from gradflow.cells.foreign_gates import call_gate_values
from gradflow.errors import GradflowError
from gradflow.watching.capture.call import Call
from gradflow.watching.capture.modules import WatchedModule


def told_gates(watched: WatchedModule, call: Call) -> Mapping[str, Tensor]:
    """Return a step's gates by name, (rows, width); empty where the cell tells none.

    The cell is asked right after its own step, while its weights are those of the step: without a
    graph, and without using up random numbers of the training.
    """
    form = watched.form
    if form is None or not form.gates or not call.start:
        return {}
    x, state = _rows(call.x), tuple(map(_rows, call.start))
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        if isinstance(form, Cell):
            return form.compute(form.drive(x), state).gates
        if not isinstance(form, ForeignCell):
            return {}
        module = form.module if watched.module is form else watched.module
        try:
            shown = call_gate_values(module, form.form, x, state)
        except GradflowError:
            return {}
    names = {gate.name for gate in form.gates}
    return {name: value.detach() for name, value in shown.items() if name in names}


def _rows(values: Tensor) -> Tensor:
    return values.reshape(-1, values.shape[-1])
