"""Models with a recurrent layer, right and wrong in one way each, for tests of inspections."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence


def held_lstm(forget: float, hidden: int = 16) -> nn.LSTM:
    """torch's default LSTM with every forget gate near one value by its bias."""
    torch.manual_seed(0)
    layer = nn.LSTM(4, hidden)
    with torch.no_grad():
        layer.bias_ih_l0[hidden : 2 * hidden] = math.log(forget / (1 - forget))
        layer.bias_hh_l0[hidden : 2 * hidden] = 0.0
    return layer


class Classifier(nn.Module):
    """Scores the last state; `keeps_output` as people do who look at its gradient."""

    def __init__(self, kind: str = "LSTM") -> None:
        super().__init__()
        torch.manual_seed(1)
        self.rnn = getattr(nn, kind)(3, 5, batch_first=True)
        self.head = nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        output, _ = self.rnn(x)
        return self.head(output[:, -1])


class Forecaster(nn.Module):
    """Data are (batch, time, features); the layer is told so only where `right`."""

    def __init__(self, *, right: bool, viewed: bool = False) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.rnn = nn.GRU(3, 6, batch_first=right)
        self.out = nn.Linear(6, 1)
        self.viewed = viewed

    def forward(self, x: Tensor) -> Tensor:
        if self.viewed:  # meant as a transpose
            batch, steps, width = x.shape
            return self.out(self.rnn(x.view(steps, batch, width))[0][-1])
        return self.out(self.rnn(x)[0][:, -1])


class Padded(nn.Module):
    """Reads the final state of a padded batch, packed or not."""

    def __init__(self, *, packed: bool) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.rnn = nn.LSTM(3, 5, batch_first=True)
        self.packed = packed

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        if self.packed and lengths is not None:
            x = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return self.rnn(x)[1][0][-1]


class EveryStep(nn.Module):
    """A layer whose output at every step is handed on, (time, batch, input) in."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(3, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.rnn(x)[0]


class Truncated(nn.Module):
    """A loop over a cell whose state is detached before step `cut`; None leaves it whole."""

    def __init__(self, cut: int | None) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.cell = nn.LSTMCell(3, 6)
        self.head = nn.Linear(6, 2)
        self.cut = cut

    def forward(self, x: Tensor) -> Tensor:
        h, c = torch.zeros(len(x), 6), torch.zeros(len(x), 6)
        for t in range(x.shape[1]):
            if t == self.cut:
                h, c = h.detach(), c.detach()
            h, c = self.cell(x[:, t], (h, c))
        return self.head(h)


class Tagger(nn.Module):
    """Tokens in, a class for every token out: an embedding, two layers both ways, dropout."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.embedding = nn.Embedding(20, 5)
        self.rnn = nn.LSTM(5, 7, 2, batch_first=True, bidirectional=True, dropout=0.3)
        self.head = nn.Linear(14, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.rnn(self.embedding(tokens))[0])


class Decoder(nn.Module):
    """A fused layer called for one step at a time, its state handed on; detached before `cut`."""

    def __init__(self, cut: int | None = None) -> None:
        super().__init__()
        torch.manual_seed(7)
        self.rnn = nn.GRU(3, 6, batch_first=True)
        self.spare = nn.LSTM(3, 2)
        self.cut = cut

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(1, len(x), 6)
        for t in range(x.shape[1]):
            h = h.detach() if t == self.cut else h
            _, h = self.rnn(x[:, t : t + 1], h)
        return h[0]


class OwnCell(nn.Module):
    """A plain recurrence of one's own."""

    def __init__(self) -> None:
        super().__init__()
        self.input_size, self.hidden_size = 3, 5
        self.mix = nn.Linear(8, 5)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.mix(torch.cat([x, h], dim=-1)))


class OwnNet(nn.Module):
    """A loop over a cell of one's own, (time, batch, input) in."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(6)
        self.cell = OwnCell()
        self.head = nn.Linear(5, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[1], 5)
        for row in x:
            h = self.cell(row, h)
        return self.head(h)
