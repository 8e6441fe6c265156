"""What a measurement of depth must show: torch's numbers, and none of the padding's."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from gradflow.cells import GRU, LSTM, RNN, CellLike, Stack, StackRun
from gradflow.engine.autograd_check import independent_twin
from gradflow.engine.depth import DepthNorms
from gradflow.engine.depth_autograd import autograd_depth_log_norms
from gradflow.records.base import Check
from gradflow.records.decay import AutogradCheck
from gradflow.records.depth import DepthMap
from gradflow.settings.depth import DepthSettings

LONGEST = 100  # steps that autograd unrolls
# Plain autograd keeps no scale and computes slopes as 1 - tanh^2.
AUTOGRAD_TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-3}
RUN_TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-4}


def check_by_autograd(stack: Stack, run: StackRun, norms: DepthNorms) -> AutogradCheck:
    """Compare one sample's norms, at up to four lags, with plain autograd's where those are good.

    The shortest sample is taken; nothing is compared where it has more than 100 steps.
    """
    row = int(norms.lengths.argmin())
    length = int(norms.lengths[row])
    positions = sorted({length, max(1, length - 3), max(1, length - length // 3), 1})
    subject = ", ".join(dict.fromkeys(independent_twin(cell)[1] for cell in stack.all_cells()))
    error = None
    if length <= LONGEST:
        twin = autograd_depth_log_norms(
            stack, run, row, positions=positions, block=norms.block, norm=norms.norm,
            read=norms.read,
        ).cpu()  # fmt: skip
        own = norms.log_norm[:, :, [position - 1 for position in positions], row].cpu()
        info = torch.finfo(stack.dtype)
        readable = (own > math.log(info.tiny / info.eps)) & (own < math.log(info.max) / 2)
        if bool(readable.any()):
            error = torch.expm1(own - twin)[readable].abs().max().item()
    return AutogradCheck(
        steps=tuple(length - position for position in positions),
        max_relative_error=error,
        tolerance=AUTOGRAD_TOLERANCE[stack.dtype],
        subject=subject,
    )


def depth_checks(
    name: str, stack: Stack, x: Tensor, lengths: list[int], settings: DepthSettings
) -> list[Check]:
    """Return the checks of one stack without links: torch's own layer, and other padding."""
    found = []
    layer = _torch_layer(stack)
    if layer is not None:
        found.append(_against_torch(name, stack, layer, x, lengths))
    if min(lengths) < settings.steps:
        found.append(_other_padding(name, stack, x, lengths))
    return found


def _against_torch(
    name: str, stack: Stack, layer: nn.RNNBase, x: Tensor, lengths: list[int]
) -> Check:
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=False)
    with torch.no_grad():
        output, state = layer(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(output, total_length=x.shape[0])
        run = stack.run(x, lengths=lengths)
    theirs = state if isinstance(state, tuple) else (state,)
    ours = tuple(torch.stack(part) for part in zip(*run.final, strict=True))
    pairs = [(run.output, padded), *zip(ours, theirs, strict=True)]
    off = max((one - other).abs().max().item() for one, other in pairs)
    tolerance = RUN_TOLERANCE[stack.dtype]
    return Check(
        f"{name}: the stack is torch's layer",
        off <= tolerance,
        f"packed nn.{type(layer).__name__}: outputs and final states differ by at most {off:.1e} "
        f"(tolerance {tolerance:g})",
    )


def _other_padding(name: str, stack: Stack, x: Tensor, lengths: list[int]) -> Check:
    """Fill the padding with huge numbers: no output may move, no gradient may arrive there."""
    padded = torch.arange(x.shape[0]).unsqueeze(1) >= torch.tensor(lengths)
    filled = x.clone()
    filled[padded.to(x.device)] = 1e6
    filled.requires_grad_()
    with torch.enable_grad():
        output = stack.run(filled, lengths=lengths).output
        (gradient,) = torch.autograd.grad(output.sum(), filled)
    with torch.no_grad():
        clean = stack.run(x, lengths=lengths).output
    moved = (output.detach() - clean).abs().max().item()
    reached = gradient[padded.to(x.device)].abs().max().item()
    tolerance = RUN_TOLERANCE[stack.dtype]
    return Check(
        f"{name}: padding changes nothing",
        moved <= tolerance and reached == 0.0,
        f"filled with 1e6: outputs move by {moved:.1e}, the gradient there is {reached:g}",
    )


def depth_notes(found: DepthMap, settings: DepthSettings) -> list[str]:
    """Return what a reader of a map should know of its zeros."""
    notes = []
    states = [row for row in found.rows if row.layer > 0]
    exact = sum(int(row.exact_zeros.sum()) for row in states)
    small = sum(int((row.zeros - row.exact_zeros).sum()) for row in states)
    what = f"{found.cell}{', residual' if found.residual else ''}"
    if exact and found.masks == "step" and settings.recurrent_dropout > 0:
        notes.append(
            f"{what}: {exact} norms are exactly 0: fresh masks have cut every path between."
        )
    elif exact:
        notes.append(
            f"{what}: {exact} norms are exactly 0: no path leads from there to what is read. That "
            "is the stack's structure, no failure."
        )
    if small:
        notes.append(
            f"{what}: {small} norms underflow to 0: a path exists, but a slope on it is too small "
            "for the dtype."
        )
    return notes


def _torch_layer(stack: Stack) -> nn.RNNBase | None:
    """Return torch's layer with the stack's weights, None where torch has none."""
    cells = stack.all_cells()
    kinds = {type(cell) for cell in cells}
    makers: dict[type, Any] = {LSTM: nn.LSTM, GRU: nn.GRU, RNN: nn.RNN}
    if len(kinds) > 1 or not kinds <= set(makers) or stack.residual:
        return None
    if any(getattr(cell, "reset", "after") == "before" for cell in cells):
        return None
    return _filled(makers[kinds.pop()], stack, cells)


def _filled(maker: Any, stack: Stack, cells: list[CellLike]) -> nn.RNNBase | None:
    first = cells[0]
    assert isinstance(first, LSTM | GRU | RNN)
    if any(cell.hidden_size != first.hidden_size for cell in cells):
        return None
    options = {"nonlinearity": first.nonlinearity} if isinstance(first, RNN) else {}
    layer: nn.RNNBase = maker(
        first.input_size,
        first.hidden_size,
        num_layers=stack.layers,
        bidirectional=stack.directions == 2,
        bias=first.bias_ih is not None,
        dtype=first.dtype,
        device=first.device,
        **options,
    )
    weights: dict[str, Tensor] = {}
    for index, cell in enumerate(cells):
        level, direction = divmod(index, stack.directions)
        end = f"_l{level}{'_reverse' if direction else ''}"
        assert isinstance(cell, LSTM | GRU | RNN)
        weights |= {name + end: value for name, value in cell.state_dict().items()}
    layer.load_state_dict(weights)
    return layer.eval()
