"""What the last output of a layer in two directions has read, and what its final states have.

The reversed half of the output at the last position was computed first: it has read one step, and
its gradient to every earlier one is exactly zero, by construction. The reversed final state (the
last row of h_n, or the reversed half of the output at position 1) has read them all.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gradflow.cells.masking import Lengths
from gradflow.cells.stack import DropoutMasks, Stack
from gradflow.engine.depth import depth_norms
from gradflow.engine.depth_target import Read
from gradflow.errors import ShapeError


@dataclass(frozen=True)
class LastOutput:
    """ln ||d half / d x_t|| of what a classifier may read at the end, each (time, batch).

    `forward_output` and `reverse_output` are the halves of the output at each sample's own last
    position, `reverse_state` is the reversed final state. -inf is an exact zero where `exact`
    (time, batch) of `reverse_output` says so; the padding has exact zeros in all of them.
    """

    forward_output: Tensor
    reverse_output: Tensor
    reverse_state: Tensor
    exact: Tensor
    lengths: Tensor

    @property
    def steps_read(self) -> Tensor:
        """Return how many inputs move the reversed half of the last output, (batch,)."""
        return torch.isfinite(self.reverse_output).sum(dim=0)


def last_output(
    layer: nn.RNNBase | Stack, x: Tensor, *, lengths: Lengths | None = None
) -> LastOutput:
    """Measure by step what each half of the last output has read, exactly.

    Args:
        layer: a bidirectional nn.LSTM, nn.GRU, nn.RNN or `Stack`.
        x: the input, (time, batch, input), whatever `batch_first` says.
        lengths: how many steps are each sample's own.

    Returns:
        Spectral norms as natural logarithms; see `LastOutput`. With one layer
        `reverse_output` is finite at each sample's last step alone; with more, the layers below
        have read everything for it.

    Raises:
        ShapeError: the layer reads one way only, or x or the lengths do not fit.

    >>> found = last_output(nn.GRU(2, 3, bidirectional=True), torch.ones(5, 1, 2))
    >>> found.steps_read.tolist(), torch.isfinite(found.reverse_state).sum().item()
    ([1], 5)
    """
    stack = layer if isinstance(layer, Stack) else Stack.from_torch(layer)
    if stack.directions == 1:
        raise ShapeError(
            "only a layer in two directions has a reversed half; this one reads forward only, and "
            "its last output has read every step."
        )
    with torch.no_grad():
        masks = DropoutMasks.none(layers=stack.layers, cells=len(stack.cells))
        run = stack.run(x, lengths=lengths, masks=masks)
    reads: tuple[Read, ...] = ("forward output", "reverse output", "reverse state")
    forward, reverse, state = (depth_norms(stack, run, ("h", "h"), read=read) for read in reads)
    return LastOutput(
        forward_output=forward.input_log_norm,
        reverse_output=reverse.input_log_norm,
        reverse_state=state.input_log_norm,
        exact=reverse.input_exact,
        lengths=forward.lengths,
    )
