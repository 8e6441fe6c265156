"""The NumPy twins as a side: their backward is written by hand, so it is a second opinion."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from gradflow.cells.numpy_cells import NumpyCell
from gradflow.cells.numpy_cells.sigmoid import Array
from gradflow.cells.numpy_cells.values import Trace
from gradflow.cells.shapes import State
from gradflow.checkpoints.sides.blocks import standard_layout
from gradflow.checkpoints.sides.protocol import Gradients, Problem, Run, Side, Way, Weights


class NumpySide(Side):
    """A `NumpyCell`: forward and backward in NumPy alone.

    Args:
        cell: whose kind and options are taken; its weights are the side's own.
        name: as asked for.
    """

    way: Way = "by hand"

    def __init__(self, cell: NumpyCell, *, name: str) -> None:
        super().__init__()
        self.name, self.what = name, "NumPy, its backward by hand"
        self.kind, self.parts = cell.kind, cell.parts
        self.input_size, self.hidden_size = cell.input_size, cell.hidden_size
        self._cell = cell
        self.layout = standard_layout(
            cell.kind, self.input_size, self.hidden_size, names=list(cell.parameters)
        )

    @property
    def weights(self) -> Weights:
        """The cell's arrays, under torch's names."""
        return {name: _tensor(array) for name, array in self._cell.parameters.items()}

    def run(self, weights: Weights, xs: Tensor, state: State) -> Run:
        """Run the cell forward."""
        _, trace = self._trace(weights, xs, state)
        steps = trace.steps
        gates = {name: _tensor(trace.gate(name)) for name in steps[0].gates}
        if gates:
            gates["candidate"] = _tensor(trace.gate("candidate"))
        return Run({part: _tensor(trace.part(part)) for part in self.parts}, gates)

    def gradients(self, weights: Weights, problem: Problem) -> Gradients:
        """Return dL by everything, by the cell's own backpropagation through time."""
        cell, trace = self._trace(weights, problem.xs, problem.state)
        found = cell.backward(
            trace,
            problem.read_h.numpy(),
            final_gradient=tuple(part.numpy() for part in problem.read_last),
        )
        by_weight = {name: _tensor(found.parameters[name]) for name in weights}
        return Gradients(
            xs=_tensor(found.inputs),
            state=dict(zip(self.parts, map(_tensor, found.initial_state), strict=True)),
            weights=by_weight,
            unreached=tuple(name for name, grad in by_weight.items() if not torch.any(grad)),
        )

    def _trace(self, weights: Weights, xs: Tensor, state: State) -> tuple[NumpyCell, Trace]:
        cell = self._with(weights)
        return cell, cell.forward(xs.numpy(), tuple(part.numpy() for part in state))

    def _with(self, weights: Mapping[str, Tensor]) -> NumpyCell:
        options = {
            key: getattr(self._cell, key)
            for key in ("reset", "nonlinearity")
            if hasattr(self._cell, key)
        }
        arrays = {name: tensor.numpy() for name, tensor in weights.items()}
        return type(self._cell).from_parameters(arrays, **options)


def _tensor(array: Array) -> Tensor:
    return torch.from_numpy(np.array(array, dtype=np.float64))
