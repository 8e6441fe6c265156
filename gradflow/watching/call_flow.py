"""What came of one call of a cell: the gradient at each of its states, by row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from gradflow.records.watch import BrokenTensor
from gradflow.watching.capture.call import Call
from gradflow.watching.twin.broken import first_broken
from gradflow.watching.twin.gates import gate_rows
from gradflow.watching.twin.norms import log10_norms
from gradflow.watching.twin.pulled import Parts


@dataclass(frozen=True)
class CallFlow:
    """One cell in one call, by row, in the order in which the cell reads.

    `logs` has per part log10 ||dL/d(state)||, (time, rows); `lengths` (rows,) where rows are
    padded; `entered` (time, rows) where a gradient came in by the output, and `came` log10 of its
    norm, None where that is not told apart. `final` is what came to
    the last states and `start` what goes on to the first ones, per part (rows, width); None where
    it is not known. `gates` has each gate's sums, (rows, 3). `gap` is how far the twin's last
    states are from the layer's, relative to the largest (at least 1); None without a twin. `size`
    is the norm of what came to the last states before anything was taken from it.
    """

    logs: Parts
    lengths: Tensor | None
    entered: Tensor
    final: tuple[Tensor | None, ...]
    start: Parts | None = None
    gates: Mapping[str, Tensor] = field(default_factory=dict)
    broken: BrokenTensor | None = None
    gap: float | None = None
    size: float = 0.0
    came: Tensor | None = None

    @property
    def steps(self) -> int:
        """How many steps the call has."""
        return len(self.logs[0])


def flow_as_trained(call: Call, parts: tuple[str, ...]) -> CallFlow:
    """Return the flow of a step of a user's cell: its new state's gradient as the training has it.

    Such a cell is called step by step, so that its states are nodes of the user's own graph.
    """
    arrived = tuple(call.arrived.get(index) for index in range(len(call.final)))
    rows = [part.reshape(-1, part.shape[-1]) for part in call.final]
    logs = tuple(
        log10_norms(torch.zeros_like(part) if gradient is None else gradient.reshape_as(part))
        for part, gradient in zip(rows, arrived, strict=True)
    )
    by_time = tuple(part.unsqueeze(0) for part in logs)
    states = tuple(part.unsqueeze(0) for part in rows)
    x = call.x.reshape(1, -1, call.x.shape[-1])
    return CallFlow(
        logs=by_time,
        lengths=None,
        entered=torch.zeros(1, len(rows[0]), dtype=torch.bool),
        final=arrived,
        gates=gate_rows({name: each.unsqueeze(0) for name, each in call.gates.items()}, None),
        broken=first_broken(x, parts, states, by_time),
    )
