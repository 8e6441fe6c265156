"""One step of an LSTM as a textbook writes it, to be held against torch's.

    gradflow parity torch.LSTMCell examples/lstm_step.py:lstm_step

A step function takes the input, the old state and its weights, and returns the new state. Here each
gate has one weight on [x, h] and one bias; how torch's weight_ih, weight_hh, bias_ih and bias_hh
fill them is found by names and shapes, and shown.

Break it and ask again: drop the last tanh, give i and f each other's weights, or write the sigmoid
as a hard one. The answer names the step, the gate, and what was done.
"""

from __future__ import annotations

import torch
from torch import Tensor


def lstm_step(  # noqa: PLR0913 - one argument per weight, as textbooks have it
    x: Tensor,
    h: Tensor,
    c: Tensor,
    W_i: Tensor,
    W_f: Tensor,
    W_o: Tensor,
    W_c: Tensor,
    b_i: Tensor,
    b_f: Tensor,
    b_o: Tensor,
    b_c: Tensor,
) -> dict[str, Tensor]:
    """Return the new h and c, and every gate.

    Args:
        x: (batch, input).
        h, c: the old state, (batch, hidden) each.
        W_i, W_f, W_o, W_c: (hidden, input + hidden), input, forget and output gate, candidate.
        b_i, b_f, b_o, b_c: (hidden,).
    """
    xh = torch.cat([x, h], dim=1)
    i = torch.sigmoid(xh @ W_i.T + b_i)
    f = torch.sigmoid(xh @ W_f.T + b_f)
    o = torch.sigmoid(xh @ W_o.T + b_o)
    candidate = torch.tanh(xh @ W_c.T + b_c)
    new_c = f * c + i * candidate
    new_h = o * torch.tanh(new_c)
    return {"h": new_h, "c": new_c, "i": i, "f": f, "o": o, "candidate": candidate}
