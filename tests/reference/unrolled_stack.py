"""A stack unrolled sample by sample with torch's own cells: no padding, no masks, only autograd.

Each sample is run alone over its own steps, so that nothing of how a padded batch is handled is
shared with what is tested. Every state is one joint tensor, a node of autograd's graph.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

Node = tuple[int, int, int]  # layer, direction, position (from 0)


@dataclass(frozen=True)
class TwinStack:
    """Cells of torch in torch's order, and how they are put together.

    ``between[l]`` are factors on the input of layer l, ``recurrent[k]`` on the h that cell k reads,
    (time, width) each, for one sample; missing ones are 1.
    """

    cells: list[nn.Module]
    directions: int = 1
    residual: bool = False
    between: dict[int, Tensor] = field(default_factory=dict)
    recurrent: dict[int, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Unrolled:
    """One sample's run: its nodes, its last outputs (time, width) and the final joint states."""

    nodes: dict[Node, Tensor]
    starts: dict[tuple[int, int], Tensor]
    output: Tensor
    finals: list[Tensor]


def parts_of(cell: nn.Module) -> int:
    """Return how many parts a torch cell's state has."""
    return 2 if isinstance(cell, nn.LSTMCell) else 1


def advance(cell: nn.Module, x: Tensor, joint: Tensor) -> Tensor:
    """Return the new joint state (state,) of one sample."""
    parts = joint.unsqueeze(0).chunk(parts_of(cell), dim=1)
    new = cell(x.unsqueeze(0), parts[0] if len(parts) == 1 else tuple(parts))
    return torch.cat(new if isinstance(new, tuple) else (new,), dim=1).squeeze(0)


def advance_dropped(cell: nn.Module, x: Tensor, joint: Tensor, drop: Tensor) -> Tensor:
    """Return the new joint state where the gates read h * drop, by dropping columns of U."""
    columns = {"weight_hh": cell.weight_hh * drop}
    parts = joint.unsqueeze(0).chunk(parts_of(cell), dim=1)
    state = parts[0] if len(parts) == 1 else tuple(parts)
    new = torch.func.functional_call(cell, columns, (x.unsqueeze(0), state))
    return torch.cat(new if isinstance(new, tuple) else (new,), dim=1).squeeze(0)


def unroll(twin: TwinStack, x: Tensor) -> Unrolled:
    """Run one sample x (time, input) from the zero state."""
    nodes: dict[Node, Tensor] = {}
    starts: dict[tuple[int, int], Tensor] = {}
    finals: list[Tensor] = []
    below = x
    for layer in range(len(twin.cells) // twin.directions):
        read = below * twin.between[layer] if layer in twin.between else below
        shown = []
        for direction in range(twin.directions):
            index = layer * twin.directions + direction
            cell = twin.cells[index]
            size = cell.hidden_size
            joint = torch.zeros(size * parts_of(cell), dtype=x.dtype, requires_grad=True)
            starts[layer, direction] = joint
            order = range(len(x)) if direction == 0 else reversed(range(len(x)))
            for t in order:
                if index in twin.recurrent:
                    joint = advance_dropped(cell, read[t], joint, twin.recurrent[index][t])
                else:
                    joint = advance(cell, read[t], joint)
                nodes[layer, direction, t] = joint
            finals.append(joint)
            shown.append(torch.stack([nodes[layer, direction, t][:size] for t in range(len(x))]))
        output = torch.cat(shown, dim=1)
        linked = twin.residual and output.shape == below.shape
        below = output + below if linked else output
    return Unrolled(nodes, starts, below, finals)


def jacobians(target: Tensor, nodes: list[Tensor]) -> list[Tensor]:
    """Return d target / d node, (target, node), for each node; zeros where no graph leads there."""
    rows = [
        torch.autograd.grad(
            unit, nodes, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        for unit in target
    ]
    return [torch.stack(each).flatten(1) for each in zip(*rows, strict=True)]


def torch_cells(layer: nn.RNNBase) -> list[nn.Module]:
    """Return torch's cells with a torch layer's weights, in torch's order."""
    kinds = {"LSTM": nn.LSTMCell, "GRU": nn.GRUCell, "RNN_TANH": nn.RNNCell, "RNN_RELU": nn.RNNCell}
    cells: list[nn.Module] = []
    for level in range(layer.num_layers):
        for end in ("", "_reverse")[: 2 if layer.bidirectional else 1]:
            weights = {
                name: getattr(layer, f"{name}_l{level}{end}").detach()
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            }
            options = {"nonlinearity": "relu"} if layer.mode == "RNN_RELU" else {}
            cell = kinds[layer.mode](
                weights["weight_ih"].shape[1], layer.hidden_size, dtype=torch.float64, **options
            )
            cell.load_state_dict(weights)
            cells.append(cell)
    return cells
