"""A GRU whose reset gate acts before the matrix product: the one torch does not have."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class TextbookGRUCell(nn.Module):
    """GRU cell with ``n = tanh(W_in x + b_in + W_hn (r * h) + b_hn)``.

    Gates and new state are torch's: ``r, z`` are sigmoids of ``W x + b + U h + d``, and
    ``h' = z * h + (1 - z) * n``. Names, shapes and row order (r, z, n) of the parameters are
    those of ``torch.nn.GRUCell``, so weights move between the two unchanged.

    Source: Cho et al. 2014, equations 5 to 8 (there too, z = 1 keeps the old state).
    """

    def __init__(
        self, input_size: int, hidden_size: int, *, dtype: torch.dtype = torch.float64
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        rows = 3 * hidden_size
        bound = hidden_size**-0.5

        def uniform(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(*shape, dtype=dtype).uniform_(-bound, bound))

        self.weight_ih = uniform(rows, input_size)
        self.weight_hh = uniform(rows, hidden_size)
        self.bias_ih = uniform(rows)
        self.bias_hh = uniform(rows)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """Return the next state, (batch, hidden), from x (batch, input) and h (batch, hidden)."""
        input_rows = (x @ self.weight_ih.T + self.bias_ih).chunk(3, dim=1)
        reset_weight, update_weight, candidate_weight = self.weight_hh.chunk(3)
        reset_bias, update_bias, candidate_bias = self.bias_hh.chunk(3)
        reset = torch.sigmoid(input_rows[0] + h @ reset_weight.T + reset_bias)
        update = torch.sigmoid(input_rows[1] + h @ update_weight.T + update_bias)
        recurrent = (reset * h) @ candidate_weight.T + candidate_bias
        candidate = torch.tanh(input_rows[2] + recurrent)
        return update * h + (1 - update) * candidate
