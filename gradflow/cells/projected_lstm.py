"""The LSTM with a projection (Sak, Senior & Beaufays 2014): h is narrower than c.

    c_t = f * c_{t-1} + i * g                  as in the LSTM
    h_t = W_hr (o * tanh(c_t))                 (projection, hidden) times (hidden)

Parameters have the names, shapes and row order of one layer of torch.nn.LSTM(proj_size=...). It
is a plain module with its gates declared, as a user would write it: `ForeignCell` measures it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gradflow.cells.gates import Gate, Rows
from gradflow.cells.lstm import LSTM

Pair = tuple[Tensor, Tensor]


class ProjectedLSTM(nn.Module):
    """One step of torch.nn.LSTM with `proj_size`, called `cell(x, (h, c))`.

    Args:
        input_size, hidden_size, proj_size: widths of x, c and h.
        bias, dtype, device: as in torch.

    >>> cell = ProjectedLSTM(3, 5, 2)
    >>> h, c = cell(torch.zeros(1, 3), (torch.zeros(1, 2), torch.zeros(1, 5)))
    >>> h.shape, c.shape
    (torch.Size([1, 2]), torch.Size([1, 5]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        proj_size: int,
        *,
        bias: bool = True,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.proj_size = input_size, hidden_size, proj_size
        self.state_size = (proj_size, hidden_size)
        bound = hidden_size**-0.5

        def uniform(*shape: int) -> nn.Parameter:
            weight = torch.empty(*shape, dtype=dtype, device=device)
            return nn.Parameter(weight.uniform_(-bound, bound))

        self.weight_ih = uniform(4 * hidden_size, input_size)
        self.weight_hh = uniform(4 * hidden_size, proj_size)
        self.bias_ih = uniform(4 * hidden_size) if bias else None
        self.bias_hh = uniform(4 * hidden_size) if bias else None
        self.weight_hr = uniform(proj_size, hidden_size)

    @property
    def gates(self) -> list[Gate]:
        """The gates in torch's row order, the candidate among them."""
        biases = ("bias_ih", "bias_hh") if self.bias_ih is not None else ()
        size = self.hidden_size
        return [
            Gate(
                name=name,
                role=role,
                bias=tuple(Rows(bias, slice(first, first + size)) for bias in biases),
                weights=tuple(
                    Rows(weight, slice(first, first + size))
                    for weight in ("weight_ih", "weight_hh")
                ),
            )
            for first, (name, role) in zip(range(0, 4 * size, size), LSTM.row_order, strict=True)
        ]

    def forward(self, x: Tensor, state: Pair) -> Pair:
        """Return the new (h, c)."""
        input_, forget, candidate, output = self._preactivations(x, state[0])
        kept = torch.sigmoid(forget) * state[1]
        c = kept + torch.sigmoid(input_) * torch.tanh(candidate)
        h = nn.functional.linear(torch.sigmoid(output) * torch.tanh(c), self.weight_hr)
        return h, c

    def gate_values(self, x: Tensor, state: Pair) -> dict[str, Tensor]:
        """Return every gate by name, and the candidate."""
        rows = self._preactivations(x, state[0])
        names = [name for name, _ in LSTM.row_order]
        squash = {"candidate": torch.tanh}
        return {
            name: squash.get(name, torch.sigmoid)(row)
            for name, row in zip(names, rows, strict=True)
        }

    def _preactivations(self, x: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        driven = nn.functional.linear(x, self.weight_ih, self.bias_ih)
        return (driven + nn.functional.linear(h, self.weight_hh, self.bias_hh)).chunk(4, dim=-1)
