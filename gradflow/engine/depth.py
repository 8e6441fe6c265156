"""Gradient flow through time and depth: ln ||d target / d s_t^(l)|| for every layer and step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from gradflow.cells.stack import DropoutMasks, Stack, StackRun
from gradflow.engine.blocks import BlockName, BlockPlace, Norm, locate_block, require_norm
from gradflow.engine.cell_steps import CellSpan, CellSteps, cell_steps, has_closed_form
from gradflow.engine.denormals import flushed_denormals
from gradflow.engine.depth_input import require_finite, require_own_run, require_stack
from gradflow.engine.depth_pull import DepthPull, Ways, ones_of
from gradflow.engine.depth_target import DepthTarget, Read, depth_target
from gradflow.engine.points import measured_points
from gradflow.engine.scaled import Scaled
from gradflow.errors import UnknownNameError, nearest_name

DepthMethod = Literal["auto", "generic"]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class DepthNorms:
    """ln ||d target / d s_t^(l)|| for every layer, direction, position and sample.

    `positions` (points,) count from 1; a state at position t is the one after reading x_t, in
    either direction. `log_norm` (layers, directions, points, batch) is natural, float64, -inf
    where the norm is zero and nan where position t is padding: there is no such state.
    `input_log_norm` (points, batch) is the same for x_t, and -inf in the padding: that gradient is
    exactly zero. `start_log_norm` (layers, directions, batch) is for the states before the first
    step. The three `exact` are True where a zero is one of structure (no path leads there), False
    where a number underflowed or is none. `lengths` (batch,) are the samples' own steps.
    """

    positions: Tensor
    log_norm: Tensor
    input_log_norm: Tensor
    start_log_norm: Tensor
    exact: Tensor
    input_exact: Tensor
    start_exact: Tensor
    lengths: Tensor
    read: Read
    block: BlockName
    norm: Norm
    method: str


def depth_norms(
    stack: Stack,
    run: StackRun | Tensor,
    block: BlockName = "joint",
    norm: Norm = "spectral",
    *,
    read: Read = "state",
    at: Tensor | list[int] | None = None,
    method: DepthMethod = "auto",
    progress: Progress | None = None,
) -> DepthNorms:
    """Measure ln ||d s_T^(L) / d s_t^(l)|| for every layer l and step t of a stack, exactly.

    The cotangents of the target are pulled back through the joint Jacobian of the stack: along
    time in every cell, and down from layer to layer through each step's input, residual links and
    dropout masks. They carry a power of two beside them, so nothing under- or overflows. The
    derivative is that of a node of the graph: s_t^(l) is varied, and everything that reads it
    later, in its own layer or above, moves with it.

    It costs, for each cell and step, products of the target's R rows with the recurrent and the
    input weights, R G H (H + I) multiply-adds for G gates: about what `jacobian_norms` costs for
    every layer, and one spectral norm for each layer and position in `at`. Memory holds all states;
    in two directions also R times the width of a layer for each position.

    Args:
        stack: what to measure.
        run: `stack.run(x, lengths=..., masks=...)`; or x (time, batch, input) alone, which is run
            from zero states, whole, with nothing dropped. Each sample is read at its own end.
        block: (row part, column part) such as ("h", "c"), or "joint" for all parts of both.
        norm: "spectral" or "frobenius".
        read: "state" for the last layer's final state s_T; "output" for its output at each
            sample's own last position. In two directions these are both, side by side, and
            "forward state", "reverse state", "forward output", "reverse output" one of them. The
            reversed half of the last output has read one step only; the reversed final state
            stands at position 1.
        at: the positions to report, from 1 to the length of x; all where None.
        method: "auto", or "generic" to ignore closed forms and use torch.func.
        progress: called as `progress(cell steps done, cell steps in all)`.

    Returns:
        The norms; see `DepthNorms`.

    Raises:
        CellLoadError: no `Stack`.
        ShapeError, DtypeError: x or `at` do not fit, or the run is another stack's.
        UnknownNameError: no such block, norm or method, or nothing of this name to read.
        DivergenceError: a state that did not stay finite.

    >>> from gradflow.cells import hold_
    >>> stack = Stack.build("lstm", 1, 4, layers=2, dtype=torch.float64)
    >>> for cell in stack.cells:
    ...     _ = hold_(cell, forget=0.1)
    >>> norms = depth_norms(stack, torch.zeros(400, 1, 1).double(), ("c", "c"))  # layers apart
    >>> [round(value, 9) for value in norms.start_log_norm[:, 0, 0].div(math.log(10.0)).tolist()]
    [-inf, -400.0]
    """
    require_stack(stack)
    require_norm(norm)
    if method not in get_args(DepthMethod):
        known = nearest_name(str(method), get_args(DepthMethod))
        raise UnknownNameError(f"there is no method {method!r}. {known}")
    target = depth_target(stack, read=read, block=block)
    with flushed_denormals(), torch.no_grad():
        ran = run if isinstance(run, StackRun) else _plain_run(stack, run)
        require_own_run(stack, ran)
        require_finite(stack, ran)
        steps, batch = ran.output.shape[:2]
        points = measured_points(at, steps)
        sheet = _Sheet(stack, ran, points, block=block, norm=norm)
        pull = DepthPull(stack, ran, target, _numbers(closed_form=method == "auto"))
        done, total = 0, steps * len(stack.cells)
        for more in pull.advance(sheet):
            done += more
            if progress is not None:
                progress(done, total)
    with torch.no_grad():  # a subnormal weight is a path, though its number was flushed
        exact = _exact_zeros(stack, ran, target, sheet, closed_form=method == "auto")
    return DepthNorms(
        positions=points,
        log_norm=sheet.states,
        input_log_norm=sheet.inputs,
        start_log_norm=sheet.starts,
        exact=exact[0],
        input_exact=exact[1],
        start_exact=exact[2],
        lengths=torch.full((batch,), steps, device="cpu")
        if ran.lengths is None
        else ran.lengths.cpu(),
        read=target.read,
        block=block,
        norm=norm,
        method=_method_name(stack, ran, method),
    )


def _plain_run(stack: Stack, x: Tensor) -> StackRun:
    """Run from zero states with nothing dropped, whatever mode the stack is in."""
    return stack.run(x, masks=DropoutMasks.none(layers=stack.layers, cells=len(stack.cells)))


class _Sheet:
    """Writes the log norm of each block that a pull shows into its place."""

    def __init__(
        self, stack: Stack, run: StackRun, points: Tensor, *, block: BlockName, norm: Norm
    ) -> None:
        self._run, self._norm, self._block = run, norm, block
        self._points = {int(point) - 1: place for place, point in enumerate(points)}
        batch = run.output.shape[1]
        shape = (stack.layers, stack.directions, len(points), batch)
        nothing = run.output.new_full(shape, -math.inf, dtype=torch.float64)
        self.states, self.inputs = nothing, nothing[0, 0].clone()
        self.starts = nothing[:, :, 0].clone()
        self._places = [
            locate_block(block, cell.parts, state)
            for cell, state in zip(stack.all_cells(), run.start, strict=True)
        ]
        self._directions = stack.directions

    def state(self, layer: int, direction: int, t: int, block: Scaled | None) -> None:
        if t not in self._points:
            return
        place = self._points[t]
        if block is not None:
            self.states[layer, direction, place] = self._log_norm(block, layer, direction)
        if self._run.valid is not None:
            self.states[layer, direction, place][~self._run.valid[t]] = math.nan

    def start(self, layer: int, direction: int, block: Scaled | None) -> None:
        if block is not None:
            self.starts[layer, direction] = self._log_norm(block, layer, direction)

    def input(self, t: int, block: Scaled | None) -> None:
        if t in self._points and block is not None:
            self.inputs[self._points[t]] = block.log_norm(self._norm)

    def _log_norm(self, block: Scaled, layer: int, direction: int) -> Tensor:
        place: BlockPlace = self._places[layer * self._directions + direction]
        return Scaled(block.matrix[:, place.columns], block.exponent).log_norm(self._norm)

    def blank(self, stack: Stack) -> _Sheet:
        """Return an empty sheet of the same places."""
        points = torch.tensor([t + 1 for t in self._points])
        return _Sheet(stack, self._run, points, block=self._block, norm=self._norm)

    def zeros(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return where states, inputs and first states have a zero."""
        return (
            torch.isneginf(self.states),
            torch.isneginf(self.inputs),
            torch.isneginf(self.starts),
        )


def _exact_zeros(
    stack: Stack, run: StackRun, target: DepthTarget, sheet: _Sheet, *, closed_form: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return where a zero is one of structure: no path leads there, with every gate open."""
    zeros = sheet.zeros()
    if not any(bool(zero.any()) for zero in zeros):
        return zeros

    def steps(span: CellSpan) -> CellSteps:
        return cell_steps(span, closed_form=closed_form, pattern=True)

    paths = sheet.blank(stack)
    for _ in DepthPull(stack, run, target, Ways(steps, ones_of)).advance(paths):
        pass
    return paths.zeros()


def _numbers(*, closed_form: bool) -> Ways:
    def steps(span: CellSpan) -> CellSteps:
        return cell_steps(span, closed_form=closed_form)

    return Ways(steps, Scaled.rescaled)


def _method_name(stack: Stack, run: StackRun, method: DepthMethod) -> str:
    """Return how the steps were differentiated: "closed form", "generic", or both by cell."""
    first = [tuple(part[:1] for part in states) for states in run.states]
    known = [
        method == "auto"
        and has_closed_form(CellSpan(cell, run.inputs[index // stack.directions][:1], state))
        for index, (cell, state) in enumerate(zip(stack.all_cells(), first, strict=True))
    ]
    names = {True: "closed form", False: "generic"}
    return " and ".join(dict.fromkeys(names[flag] for flag in known))
