"""LSTM and GRU modules as people write them, each with one slip or habit."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Cell(nn.Module):
    """An LSTM cell on two linear layers, torch's equations; subclasses slip."""

    def __init__(self, input_size: int = 3, hidden_size: int = 5) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.ih = nn.Linear(input_size, 4 * hidden_size)
        self.hh = nn.Linear(hidden_size, 4 * hidden_size)

    def totals(self, x: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        """Return the pre-activations i, f, g, o."""
        return (self.ih(x) + self.hh(h)).chunk(4, 1)

    def gate(self, total: Tensor) -> Tensor:
        """Return a gate."""
        return torch.sigmoid(total)

    def show(self, o: Tensor, c: Tensor) -> Tensor:
        """Return h."""
        return o * torch.tanh(c)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the new (h, c)."""
        h, c = state
        i, f, g, o = self.totals(x, h)
        c = self.gate(f) * c + self.gate(i) * torch.tanh(g)
        return self.show(self.gate(o), c), c


class KerasHard(Cell):
    """Keras 2's hard sigmoid."""

    def gate(self, total: Tensor) -> Tensor:
        """Return a gate."""
        return torch.clamp(0.2 * total + 0.5, 0, 1)


class TorchHard(Cell):
    """torch's hard sigmoid."""

    def gate(self, total: Tensor) -> Tensor:
        """Return a gate."""
        return functional.hardsigmoid(total)


class NoOutputTanh(Cell):
    """h = o * c."""

    def show(self, o: Tensor, c: Tensor) -> Tensor:
        """Return h."""
        return o * c


class OneBias(Cell):
    """Has two biases and adds one."""

    def totals(self, x: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        """Return the pre-activations."""
        return (self.ih(x) + functional.linear(h, self.hh.weight)).chunk(4, 1)


class BiasTwice(nn.Module):
    """One bias, given to both products."""

    def __init__(self, input_size: int = 3, hidden_size: int = 5) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.Wx = nn.Parameter(torch.randn(4 * hidden_size, input_size))
        self.Wh = nn.Parameter(torch.randn(4 * hidden_size, hidden_size))
        self.b = nn.Parameter(torch.randn(4 * hidden_size))

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the new (h, c)."""
        h, c = state
        total = functional.linear(x, self.Wx, self.b) + functional.linear(h, self.Wh, self.b)
        i, f, g, o = total.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class OneBiasGRU(nn.Module):
    """A GRU with one bias per gate: no b_hn inside the reset."""

    def __init__(self, input_size: int = 3, hidden_size: int = 5) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.x2h = nn.Linear(input_size, 3 * hidden_size)
        self.h2h = nn.Linear(hidden_size, 3 * hidden_size, bias=False)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """Return the new h."""
        a, b = self.x2h(x).chunk(3, 1), self.h2h(h).chunk(3, 1)
        r, z = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
        n = torch.tanh(a[2] + r * b[2])
        return z * h + (1 - z) * n


class Detached(Cell):
    """Cuts the gradient at h."""

    def totals(self, x: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        """Return the pre-activations."""
        return super().totals(x, h.detach())


class DeadWeight(Cell):
    """Uses a weight's values and hides it from autograd."""

    def totals(self, x: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        """Return the pre-activations."""
        product = functional.linear(h, self.hh.weight.data, self.hh.bias)
        return (self.ih(x) + product).chunk(4, 1)


class Idle(Cell):
    """Has a layer that no step uses."""

    def __init__(self, input_size: int = 3, hidden_size: int = 5) -> None:
        super().__init__(input_size, hidden_size)
        self.head = nn.Linear(hidden_size, 2)


class Normed(Cell):
    """Has a layer norm that torch's cell has not."""

    def __init__(self, input_size: int = 3, hidden_size: int = 5) -> None:
        super().__init__(input_size, hidden_size)
        self.norm = nn.LayerNorm(hidden_size)

    def show(self, o: Tensor, c: Tensor) -> Tensor:
        """Return h."""
        return o * torch.tanh(self.norm(c))


class Unregistered(Cell):
    """Keeps a weight as a plain tensor."""

    def __init__(self, input_size: int = 3, hidden_size: int = 5) -> None:
        super().__init__(input_size, hidden_size)
        del self.hh
        self.W = torch.randn(4 * hidden_size, hidden_size)

    def totals(self, x: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        """Return the pre-activations."""
        return (self.ih(x) + h @ self.W.T).chunk(4, 1)


class MixedRows(Cell):
    """Takes the batch's mean away."""

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the new (h, c)."""
        h, c = super().forward(x, state)
        return h - h.mean(dim=0, keepdim=True), c


class Counting(Cell):
    """Remembers how often it was called."""

    calls = 0

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the new (h, c)."""
        self.calls += 1
        h, c = super().forward(x, state)
        return h * (1 + 0.01 * (self.calls % 7)), c


class NotANumber(Cell):
    """Takes the logarithm of a state that may be negative."""

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return the new (h, c)."""
        h, c = super().forward(x, state)
        return h, torch.log(c)


class Apart(Cell):
    """Takes h and c apart."""

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """Return the new (h, c)."""
        return super().forward(x, (h, c))
