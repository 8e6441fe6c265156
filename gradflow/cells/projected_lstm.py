"""The LSTM with a projection (Sak, Senior & Beaufays 2014): h is narrower than c.

    c_t = f * c_{t-1} + i * g                  as in the LSTM
    h_t = W_hr (o * tanh(c_t))                 (projection, hidden) times (hidden)

Parameters have the names, shapes and row order of one layer of torch.nn.LSTM(proj_size=...). It
is a plain module with its gates declared, as a user would write it: `ForeignCell` measures it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gradflow.cells.gates import Gate, Role, Rows

Pair = tuple[Tensor, Tensor]
ROW_ORDER: tuple[tuple[str, Role], ...] = (
    ("input", "write"),
    ("forget", "keep"),
    ("candidate", "candidate"),
    ("output", "output"),
)


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
        gates = []
        for index, (name, role) in enumerate(ROW_ORDER):
            rows = slice(index * self.hidden_size, (index + 1) * self.hidden_size)
            bias = tuple(Rows(parameter, rows) for parameter in biases)
            weights = (Rows("weight_ih", rows), Rows("weight_hh", rows))
            gates.append(Gate(name, role, bias=bias, weights=weights))
        return gates

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
        names = [name for name, _ in ROW_ORDER]
        squash = {"candidate": torch.tanh}
        return {
            name: squash.get(name, torch.sigmoid)(row)
            for name, row in zip(names, rows, strict=True)
        }

    def _preactivations(self, x: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        driven = nn.functional.linear(x, self.weight_ih, self.bias_ih)
        return (driven + nn.functional.linear(h, self.weight_hh, self.bias_hh)).chunk(4, dim=-1)
