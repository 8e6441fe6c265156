"""The same norms by plain torch.autograd on an unrolled stack: slow, obvious, independent.

One sample is run over its own steps alone, on as many copies as the target has rows; copy j is
asked for the gradient of row j at every state at once. torch's own cells are differentiated where
there are some. No scale is carried: the numbers are good only while autograd's are normal.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gradflow.cells.protocol import CellLike
from gradflow.cells.stack import DropoutMasks, Stack, StackRun, output_part
from gradflow.cells.stack.dropout import mask_at
from gradflow.cells.stack.recurrent_mask import advance_masked, require_maskable
from gradflow.engine.autograd_check import call_module, independent_twin
from gradflow.engine.blocks import BlockName, Norm, locate_block
from gradflow.engine.depth_target import Read, depth_target
from gradflow.engine.log_norms import log_norm

Nodes = dict[tuple[int, int, int], Tensor]


@dataclass(frozen=True)
class _Sample:
    """One sample of a run: its length, its masks, and how many copies of it are run."""

    row: int
    steps: int
    copies: int
    masks: DropoutMasks | None


def autograd_depth_log_norms(
    stack: Stack,
    run: StackRun,
    row: int,
    *,
    positions: list[int],
    block: BlockName,
    norm: Norm,
    read: Read = "state",
) -> Tensor:
    """Return ln ||d target / d s_t^(l)|| of one sample, (layers, directions, positions), float64.

    Args:
        stack, run: as in `depth_norms`.
        row: which sample.
        positions: from 1 to the sample's own length.
        block, norm, read: as in `depth_norms`.
    """
    target = depth_target(stack, read=read, block=block)
    steps = run.output.shape[0] if run.lengths is None else int(run.lengths[row])
    top = stack.cells_of(stack.layers - 1)
    widths = stack.output_sizes(stack.layers - 1)
    chosen = [top[direction] for direction in target.directions]
    if target.what == "output":
        copies = sum(widths[direction] for direction in target.directions)
    else:
        copies = sum(
            _rows(cell, block, run).stop - _rows(cell, block, run).start for cell in chosen
        )
    masks = None if run.masks is None else run.masks.row(row, copies)
    with torch.enable_grad():
        nodes, output = _unroll(stack, run, _Sample(row, steps, copies, masks))
        last = {0: steps - 1, 1: 0}
        if target.what == "output":
            shares = output[-1].split(widths, dim=1)
            read_rows = [shares[direction] for direction in target.directions]
        else:
            read_rows = [
                nodes[stack.layers - 1, direction, last[direction]][:, _rows(cell, block, run)]
                for direction, cell in zip(target.directions, chosen, strict=True)
            ]
        total = torch.cat(read_rows, dim=1).diagonal().sum()
        places = [
            (layer, direction, position - 1)
            for layer in range(stack.layers)
            for direction in range(stack.directions)
            for position in positions
        ]
        gradients = torch.autograd.grad(
            total, [nodes[place] for place in places], allow_unused=True, materialize_grads=True
        )
    found = [
        log_norm(gradient[:, _columns(stack.cell(place[0], place[1]), block, run)], norm)
        for place, gradient in zip(places, gradients, strict=True)
    ]
    return torch.stack(found).reshape(stack.layers, stack.directions, len(positions))


def _unroll(stack: Stack, run: StackRun, sample: _Sample) -> tuple[Nodes, list[Tensor]]:
    """Return every joint state as a node of the graph, and the last layer's outputs by step."""
    nodes: Nodes = {}
    x = run.inputs[0][: sample.steps, sample.row : sample.row + 1].detach()
    below = list(x.expand(-1, sample.copies, -1))
    for layer in range(stack.layers):
        drop = None if sample.masks is None else sample.masks.between[layer]
        reading = [row if drop is None else row * mask_at(drop, t) for t, row in enumerate(below)]
        shown: list[list[Tensor]] = []
        for direction in range(stack.directions):
            index = layer * stack.directions + direction
            states = _unroll_cell(stack, run, index, reading, sample)
            nodes |= {(layer, direction, t): joint for t, joint in enumerate(states)}
            cell = stack.cell(layer, direction)
            part = output_part(cell)
            shown.append([joint.split(cell.part_sizes, dim=1)[part] for joint in states])
        output = [torch.cat(rows, dim=1) for rows in zip(*shown, strict=True)]
        linked = stack.has_link(layer)
        below = [y + x for y, x in zip(output, below, strict=True)] if linked else output
    return nodes, below


def _unroll_cell(
    stack: Stack, run: StackRun, index: int, reading: list[Tensor], sample: _Sample
) -> list[Tensor]:
    """Return the joint state after reading each step, by position."""
    layer, direction = divmod(index, stack.directions)
    cell = stack.cell(layer, direction)
    twin: nn.Module = independent_twin(cell)[0]
    mask = None if sample.masks is None else sample.masks.recurrent[index]
    start = torch.cat([part[sample.row] for part in run.start[index]]).detach()
    joint = start.expand(sample.copies, -1).clone().requires_grad_()
    order = list(range(sample.steps))[:: -1 if direction == 1 else 1]
    found: dict[int, Tensor] = {}
    for t in order:
        state = joint.split(cell.part_sizes, dim=1)
        if mask is None:
            new = call_module(twin, reading[t], state)
        else:
            masked = require_maskable(cell)
            new = advance_masked(masked, masked.drive(reading[t]), state, mask_at(mask, t))
        joint = torch.cat(new, dim=1)
        found[t] = joint
    return [found[t] for t in range(sample.steps)]


def _rows(cell: CellLike, block: BlockName, run: StackRun) -> slice:
    return locate_block(block, cell.parts, _state_of(cell, run)).rows


def _columns(cell: CellLike, block: BlockName, run: StackRun) -> slice:
    return locate_block(block, cell.parts, _state_of(cell, run)).columns


def _state_of(cell: CellLike, run: StackRun) -> tuple[Tensor, ...]:
    return tuple(run.output.new_empty(1, width) for width in cell.part_sizes)
