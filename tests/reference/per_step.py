"""torch's layers unrolled with torch's own cells, sample by sample: each state a graph's node.

Called as the layer is. Nothing is shared with the package; a padded sample is simply shorter.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence, unpack_sequence

Node = tuple[Tensor, ...]  # h, or (h, c), each (1, width): the very tensors that go on


class PerStep:
    """A layer of torch, step by step; `calls[k][level, direction][sample]` are a call's states.

    ``masks[level]`` are factors on what that level reads: (time, batch, width), or packed data.
    """

    def __init__(self, layer: nn.RNNBase, masks: dict[int, Tensor] | None = None) -> None:
        self.layer, self.masks = copy.deepcopy(layer), masks or {}  # training moves the weights
        self.calls: list[dict[tuple[int, int], list[list[Node]]]] = []

    def __call__(self, x: Any, hx: Any = None) -> tuple[Any, Any]:
        if isinstance(x, PackedSequence):
            below = unpack_sequence(x)
        elif x.dim() == 2:
            below = [x]
        else:
            below = list((x if self.layer.batch_first else x.transpose(0, 1)).unbind(0))
        plain = not isinstance(x, PackedSequence) and x.dim() == 2
        found: dict[tuple[int, int], list[list[Node]]] = {}
        finals: list[list[Node]] = []
        directions = 2 if self.layer.bidirectional else 1
        for level in range(self.layer.num_layers):
            if level in self.masks:
                below = self._dropped(below, self.masks[level], x)
            shown = []
            for direction in range(directions):
                index = level * directions + direction
                starts = [self._start(hx, index, sample, plain) for sample in range(len(below))]
                runs = [
                    self._run(index, rows, start, reverse=direction == 1)
                    for rows, start in zip(below, starts, strict=True)
                ]
                found[level, direction] = runs
                finals.append([run[0] if direction else run[-1] for run in runs])
                shown.append([torch.cat([state[0] for state in run]) for run in runs])
            below = [torch.cat(parts, dim=-1) for parts in zip(*shown, strict=True)]
        self.calls.append(found)
        parts = [
            torch.stack([torch.cat([state[part] for state in row]) for row in finals])
            for part in range(len(finals[0][0]))
        ]
        if plain:
            parts = [part.squeeze(1) for part in parts]
        last = parts[0] if len(parts) == 1 else tuple(parts)
        return self._output(below, x, plain), last

    def _dropped(self, below: list[Tensor], mask: Tensor, x: Any) -> list[Tensor]:
        if isinstance(x, PackedSequence):
            masks = unpack_sequence(PackedSequence(mask, *x[1:]))
        else:
            masks = list(mask.transpose(0, 1).unbind(0))
        return [rows * factor for rows, factor in zip(below, masks, strict=True)]

    def _start(self, hx: Any, index: int, sample: int, plain: bool) -> Node:
        lstm = isinstance(self.layer, nn.LSTM)
        if hx is None:
            width = self.layer.proj_size or self.layer.hidden_size
            sizes = (width, self.layer.hidden_size) if lstm else (width,)
            return tuple(torch.zeros(1, size, dtype=torch.float64) for size in sizes)
        parts = hx if lstm else (hx,)
        rows = [part[index] if plain else part[index, sample] for part in parts]
        return tuple(row.unsqueeze(0) for row in rows)

    def _run(self, index: int, rows: Tensor, start: Node, *, reverse: bool) -> list[Node]:
        order = list(range(len(rows)))
        state, visited = start, {}
        for t in reversed(order) if reverse else order:
            state = self._step(index, rows[t].unsqueeze(0), list(state))
            for part in state:
                if not part.requires_grad:
                    part.requires_grad_()
            visited[t] = state
        return [visited[t] for t in order]

    def _step(self, index: int, x: Tensor, state: list[Tensor]) -> tuple[Tensor, ...]:
        layer = self.layer
        directions = 2 if layer.bidirectional else 1
        level, direction = divmod(index, directions)
        suffix = f"_l{level}" + ("_reverse" if direction else "")
        names = ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
        w_ih, w_hh, b_ih, b_hh = (getattr(layer, name + suffix, None) for name in names)
        if isinstance(layer, nn.GRU):
            return (torch._VF.gru_cell(x, state[0], w_ih, w_hh, b_ih, b_hh),)
        if isinstance(layer, nn.RNN):
            step = torch._VF.rnn_relu_cell if layer.mode == "RNN_RELU" else torch._VF.rnn_tanh_cell
            return (step(x, state[0], w_ih, w_hh, b_ih, b_hh),)
        if not layer.proj_size:
            return tuple(torch._VF.lstm_cell(x, state, w_ih, w_hh, b_ih, b_hh))
        rows = nn.functional.linear(x, w_ih, b_ih) + nn.functional.linear(state[0], w_hh, b_hh)
        i, f, g, o = rows.chunk(4, dim=-1)
        c = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
        projection = getattr(layer, f"weight_hr{suffix}")
        return (torch.sigmoid(o) * torch.tanh(c)) @ projection.T, c

    def _output(self, rows: list[Tensor], x: Any, plain: bool) -> Any:
        if isinstance(x, PackedSequence):
            return pack_sequence(rows, enforce_sorted=x.sorted_indices is None)
        if plain:
            return rows[0]
        return torch.stack(rows, dim=0 if self.layer.batch_first else 1)


def profiles(loss: Tensor, twin: PerStep, call: int = 0) -> dict[tuple[int, int, int], list[float]]:
    """Return log10 norms of dL/d(state) over the batch by distance from each sample's own end.

    Keys are level, direction and part. The end of a reversed direction is the first position.
    """
    found: dict[tuple[int, int, int], list[float]] = {}
    for (level, direction), runs in twin.calls[call].items():
        for part in range(len(runs[0][0])):
            squares: dict[int, float] = {}
            for run in runs:
                nodes = [state[part] for state in run]
                gradients = torch.autograd.grad(loss, nodes, retain_graph=True, allow_unused=True)
                for t, gradient in enumerate(gradients):
                    distance = t if direction else len(run) - 1 - t
                    size = 0.0 if gradient is None else float(gradient.double().square().sum())
                    squares[distance] = squares.get(distance, 0.0) + size
            found[level, direction, part] = [
                0.5 * math.log10(squares[d]) if squares[d] > 0 else -math.inf
                for d in sorted(squares)
            ]
    return found
