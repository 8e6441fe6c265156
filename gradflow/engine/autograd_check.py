"""The same norms by plain torch.autograd on an unrolled module: slow, obvious, independent.

The module is run on as many copies of one state as the Jacobian has rows; copy j is asked for the
gradient of entry j of s_T. Rows of a batch do not see each other, so one backward pass gives the
whole Jacobian. No scale is carried: the numbers are good only while autograd's are normal.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn

from gradflow.cells.gru import GRU
from gradflow.cells.lstm import LSTM
from gradflow.cells.protocol import CellLike
from gradflow.cells.rnn import RNN
from gradflow.cells.shapes import State
from gradflow.engine.blocks import BlockName, Norm, locate_block
from gradflow.engine.log_norms import log_norm


def autograd_log_norms(
    module: nn.Module,
    x: Tensor,
    state: State,
    *,
    parts: tuple[str, ...],
    block: BlockName,
    norm: Norm,
    steps: list[int],
) -> Tensor:
    """Return ln ||ds_T/ds_0|| at each T in `steps` (ascending), (len(steps),), float64.

    Args:
        module: a cell in torch's call form, `module(x, h)` or `module(x, (h, c))`.
        x: the input of one row, (time, 1, input).
        state: the state before the first step, one (1, width) tensor per part.
        parts: names of the parts.
        block, norm: as in `jacobian_norms`.
        steps: the T to read.
    """
    place = locate_block(block, parts, state)
    widths = [part.shape[-1] for part in state]
    copies = place.rows.stop - place.rows.start
    with torch.enable_grad():
        start = torch.cat(state, dim=-1).detach().expand(copies, -1).clone().requires_grad_()
        current: State = torch.split(start, widths, dim=-1)
        norms = []
        for t in range(steps[-1]):
            current = call_module(module, x[t].expand(copies, -1), current)
            if t + 1 in steps:
                new = torch.cat(current, dim=-1)[:, place.rows]
                norms.append(log_norm(rows_by_copies(new, start)[:, place.columns], norm))
    return torch.stack(norms)


def rows_by_copies(new: Tensor, copies: Tensor) -> Tensor:
    """Return the Jacobian whose row j is the gradient of entry j of `new[j]` at `copies[j]`.

    Zeros where nothing of `copies` reached `new`. The graph is kept for a later call.
    """
    total = new.diagonal().sum()
    if not total.requires_grad:
        return torch.zeros_like(copies)
    (jacobian,) = torch.autograd.grad(total, copies, retain_graph=True, materialize_grads=True)
    return jacobian


def call_module(module: nn.Module, x: Tensor, state: State) -> State:
    """Call a cell in torch's form and return its new state as a tuple."""
    new = module(x, state[0] if len(state) == 1 else state)
    return (new,) if isinstance(new, Tensor) else tuple(new)


def independent_twin(cell: CellLike) -> tuple[nn.Module, str]:
    """Return the module that autograd should differentiate for this cell, and its name.

    torch's own cell where there is one. A user's cell is its own twin (autograd is independent of
    the engine's way), and so is the GRU with the reset gate before the product, which torch lacks.
    """
    if isinstance(cell, GRU) and cell.reset == "before":
        return cell, "the cell's own step, reset before the product"
    # a subclass may step in another way, so that torch's cell would be no twin of it
    if isinstance(cell, LSTM | GRU | RNN) and type(cell) in (LSTM, GRU, RNN):
        twin: nn.Module = cell.to_torch()
        return twin, f"torch.nn.{type(twin).__name__}"
    # around a user's module, the cell knows the form that the module is called in
    return cast(nn.Module, cell), type(getattr(cell, "module", cell)).__name__


def readable_steps(
    steps: Tensor,
    log_norms: Tensor,
    dtype: torch.dtype,
    *,
    exact: bool = False,
    furthest: int = 100,
) -> list[int]:
    """Return up to four of the steps at which autograd's numbers are still normal.

    None beyond `furthest` (the unroll keeps a graph), and at norms whose smallest relevant entries
    (the norm times round-off) stay normal in the dtype. Exact zeros can be read too.

    Args:
        steps: (points,) ascending.
        log_norms: (points,) natural logs of the norms there.
        dtype: what autograd computes in.
        exact: whether zeros are exact ones, which autograd must find as well.
        furthest: the last step that may be read.
    """
    info = torch.finfo(dtype)
    low = math.log(info.tiny / info.eps)
    high = math.log(info.max) / 2
    usable = (log_norms > low) & (log_norms < high)
    if exact:
        usable |= torch.isneginf(log_norms)
    candidates: list[int] = steps[usable & (steps <= furthest)].tolist()
    if len(candidates) <= 4:
        return candidates
    last = len(candidates) - 1
    return sorted({candidates[round(last ** (k / 3)) if k else 0] for k in range(4)})
