"""Cells as people write them by hand, each with its own way to fail or to hold at huge numbers.

Every function without an underscore returns a module in torch's call form, 3 inputs and 4 units.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

INPUTS, UNITS = 3, 4
Squash = Callable[[Tensor], Tensor]


class _Lstm(nn.Module):
    """`cell(x, (h, c))` on one linear layer over [x, h], rows in the order i, f, g, o."""

    def __init__(self, sigmoid: Squash, tanh: Squash = torch.tanh) -> None:
        super().__init__()
        self.input_size, self.hidden_size = INPUTS, UNITS
        self.lin = nn.Linear(INPUTS + UNITS, 4 * UNITS)
        self.sigmoid, self.tanh = sigmoid, tanh

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        h, c = state
        write, forget, candidate, output = self.lin(torch.cat([x, h], 1)).chunk(4, 1)
        c = self.sigmoid(forget) * c + self.sigmoid(write) * self.tanh(candidate)
        return self.sigmoid(output) * self.tanh(c), c


class _SeparateGru(nn.Module):
    """A GRU with a linear layer of its own for every gate, and the naive sigmoid."""

    def __init__(self) -> None:
        super().__init__()
        self.input_size, self.hidden_size = INPUTS, UNITS
        self.wz, self.wn = nn.Linear(INPUTS, UNITS), nn.Linear(INPUTS, UNITS)
        self.uz, self.un = (nn.Linear(UNITS, UNITS, bias=False) for _ in range(2))

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        z = _naive(self.wz(x) + self.uz(h))
        return (1 - z) * torch.tanh(self.wn(x) + self.un(h)) + z * h


class _InPlace(nn.Module):
    """Sums, slices and results written in place, on the naive sigmoid."""

    def __init__(self) -> None:
        super().__init__()
        self.input_size, self.hidden_size = INPUTS, UNITS
        self.lin = nn.Linear(INPUTS, 2 * UNITS)
        self.rec = nn.Linear(UNITS, 2 * UNITS, bias=False)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        rows = self.lin(x).clone()
        rows += self.rec(h)
        gate = rows[:, :UNITS].neg().exp().add(1).reciprocal_()
        new = torch.empty_like(h)
        new[:] = gate * h + (1 - gate) * torch.tanh(rows[:, UNITS:])
        return new


class _Normalised(nn.Module):
    """Layer normalisation, whose variance overflows where its result does not."""

    def __init__(self) -> None:
        super().__init__()
        self.input_size, self.hidden_size = INPUTS, UNITS
        self.lin, self.norm = nn.Linear(INPUTS + UNITS, UNITS), nn.LayerNorm(UNITS)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.norm(self.lin(torch.cat([x, h], 1))))


class _Exponential(nn.Module):
    """An exponential write gate without a stabiliser: its own state overflows."""

    def __init__(self) -> None:
        super().__init__()
        self.input_size, self.state_size = INPUTS, (UNITS, UNITS)
        self.parts = ("h", "c")
        self.lin = nn.Linear(INPUTS + UNITS, 2 * UNITS)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        h, c = state
        write, candidate = self.lin(torch.cat([x, h], 1)).chunk(2, 1)
        c = 0.5 * c + torch.exp(write) * torch.sigmoid(candidate)
        return torch.tanh(c), c


class _Refusing(nn.Module):
    """A cell that raises where a pre-activation is larger than 1000."""

    def __init__(self) -> None:
        super().__init__()
        self.input_size, self.hidden_size = INPUTS, UNITS
        self.lin = nn.Linear(INPUTS + UNITS, UNITS)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        rows = self.lin(torch.cat([x, h], 1))
        if rows.abs().max() > 1000:
            raise ValueError("a pre-activation beyond 1000")
        return torch.tanh(rows)


class _Float32Only(nn.Module):
    """A cell with a constant that no conversion reaches, so that it runs in float32 alone."""

    def __init__(self) -> None:
        super().__init__()
        self.input_size, self.hidden_size = INPUTS, UNITS
        self.lin = nn.Linear(INPUTS + UNITS, UNITS)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.sigmoid(self.lin(torch.cat([x, h], 1))) @ torch.eye(UNITS)


class _Unbiased(nn.Module):
    """A cell whose declared gates have no bias."""

    def __init__(self) -> None:
        super().__init__()
        self.input_size, self.hidden_size = INPUTS, UNITS
        self.lin = nn.Linear(INPUTS + UNITS, 2 * UNITS, bias=False)
        self.gates = [
            {"name": "update", "role": "keep", "weights": [f"lin.weight[0:{UNITS}]"]},
            {"name": "content", "role": "candidate", "weights": [f"lin.weight[{UNITS}:]"]},
        ]

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        z, n = self.lin(torch.cat([x, h], 1)).chunk(2, 1)
        z = torch.sigmoid(z)
        return z * h + (1 - z) * torch.tanh(n)


class _OutOfRange(_Unbiased):
    """A cell whose gate is 1.5 sigmoid(v), and says so by `gate_values`."""

    def gate_values(self, x: Tensor, h: Tensor) -> dict[str, Tensor]:
        z, _ = self.lin(torch.cat([x, h], 1)).chunk(2, 1)
        return {"update": 1.5 * torch.sigmoid(z)}


class _OwnBackward(torch.autograd.Function):
    """torch.sigmoid with a derivative written out: e^-v / (1 + e^-v)^2."""

    @staticmethod
    def forward(ctx: object, value: Tensor) -> Tensor:
        ctx.save_for_backward(value)  # type: ignore[attr-defined]
        return torch.sigmoid(value)

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        (value,) = ctx.saved_tensors  # type: ignore[attr-defined]
        e = torch.exp(-value)
        return gradient * e / (1 + e) ** 2


def _naive(value: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-value))


def _two_sided(value: Tensor) -> Tensor:
    """The sigmoid that picks the stable side: right forward, nan * 0 backward."""
    return torch.where(
        value >= 0, 1 / (1 + torch.exp(-value)), torch.exp(value) / (1 + torch.exp(value))
    )


def _spelled_tanh(value: Tensor) -> Tensor:
    up, down = torch.exp(value), torch.exp(-value)
    return (up - down) / (up + down)


def naive_sigmoid() -> nn.Module:
    """1 / (1 + e^-v) written out: nan backward."""
    return _Lstm(_naive)


def two_sided_sigmoid() -> nn.Module:
    """torch.where over two sigmoids: nan backward."""
    return _Lstm(_two_sided)


def own_backward() -> nn.Module:
    """An autograd.Function whose backward is inf / inf."""
    return _Lstm(_OwnBackward.apply)


def spelled_tanh() -> nn.Module:
    """(e^v - e^-v) / (e^v + e^-v): nan forward."""
    return _Lstm(torch.sigmoid, _spelled_tanh)


def sound() -> nn.Module:
    """The same LSTM with torch.sigmoid and torch.tanh."""
    return _Lstm(torch.sigmoid)


def sound_softplus() -> nn.Module:
    """A sigmoid by softplus, which is right everywhere."""
    return _Lstm(lambda value: torch.exp(-nn.functional.softplus(-value)))


def separate_layers() -> nn.Module:
    """A naive GRU, a layer per gate."""
    return _SeparateGru()


def in_place() -> nn.Module:
    """A naive GRU that writes in place."""
    return _InPlace()


def layer_norm() -> nn.Module:
    """A normalised RNN."""
    return _Normalised()


def exponential_gate() -> nn.Module:
    """An exponential write gate."""
    return _Exponential()


def refusing() -> nn.Module:
    """A cell that raises at large numbers."""
    return _Refusing()


def float32_only() -> nn.Module:
    """A cell that runs in float32 alone."""
    return _Float32Only()


def unbiased() -> nn.Module:
    """A cell that declares gates without a bias."""
    return _Unbiased()


def gate_out_of_range() -> nn.Module:
    """A cell with a gate of 1.5 sigmoid."""
    return _OutOfRange()
