"""Does a layer's order of gates look foreign? What its biases say of it, and how surely.

Row counts cannot tell the order i, f, g, o of torch from ONNX's i, o, f, g. Biases can tell a
little, for two reasons:

- A candidate's unit may change its sign together with the weights that read it, and nothing else
  changes. So over the units its biases have no preferred sign: their mean is about 0. A gate has
  no such symmetry.
- The forget gate's bias is often set to 1 or more before training (Gers et al. 2000, Jozefowicz et
  al. 2015), and training keeps it there.

The mean m of each block of rows is held against what each gate may have, a normal of its own
expected spread plus the mean's own error, s^2 / n. Bayes' rule over all orders does the rest, with
a strong prior for torch's, since most files are right. Input and output gate look alike, so orders
that differ in them alone stay undecided, and so do a GRU's reset and update gate: the probabilities
say so.

This is a suspicion and no proof: `gradflow parity` with a recorded input and output is one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradflow.cells import Cell, CellLike

LETTERS = {
    "lstm": {"i": "input", "f": "forget", "g": "candidate", "o": "output"},
    "gru": {"r": "reset", "z": "update", "n": "candidate"},
}
TORCH_ORDER = {"lstm": "ifgo", "gru": "rzn"}
# Orders that other programs use, and how often a file has them, before any of it was seen.
PROGRAMS = {
    "lstm": {
        "ifgo": "torch, cuDNN, Keras",
        "iofg": "ONNX",
        "igfo": "TensorFlow 1, Haiku",
        "ifog": "char-rnn and NumPy code after it",
        "figo": "textbook code (f, i, c, o)",
    },
    "gru": {"rzn": "torch, cuDNN", "zrn": "ONNX, Keras"},
}
_PRIOR_TORCH = 0.85
_PRIOR_KNOWN = 0.12  # shared by the other programs' orders; the rest goes to all others
SUSPECTED_BELOW = 0.5  # of torch's order: rather foreign than not
LIKELY_BELOW = 0.1
_FEWEST_UNITS = 6  # of fewer the spread is hardly known

# Expected means of a gate's effective bias over the units: (share, mean, spread). Measured on 72
# LSTMs and 48 GRUs trained on six tasks, from torch's own biases, from zero and from forget = 1.
# A write or output gate is seldom set open on purpose, and sometimes shut (chrono, Tallec and
# Ollivier 2018); a keep gate is often set open, and with it a GRU's reset gate.
_USUAL = ((0.92, 0.0, 0.4), (0.06, -2.0, 1.5), (0.02, 1.0, 1.0))
_SET_OPEN = ((0.5, 0.0, 0.4), (0.3, 1.2, 0.5), (0.2, 2.0, 2.0))
_EXPECTED = {
    "input": _USUAL,
    "output": _USUAL,
    "reset": _SET_OPEN,
    "forget": _SET_OPEN,
    "update": _SET_OPEN,
    "candidate": ((0.995, 0.0, 0.1), (0.005, 0.0, 1.0)),
}


@dataclass(frozen=True)
class GateOrders:
    """How likely each order of gates is, given a layer's biases.

    `means` and `errors` are the mean effective bias of each block of rows and its standard error,
    in the order of the file. `probabilities` has all orders, the likeliest first.
    """

    kind: str
    means: tuple[float, ...]
    errors: tuple[float, ...]
    probabilities: Mapping[str, float]

    @property
    def likeliest(self) -> str:
        """The likeliest order, such as "iofg"."""
        return next(iter(self.probabilities))

    @property
    def torch_probability(self) -> float:
        """How likely it is that the rows are in torch's order."""
        return self.probabilities[TORCH_ORDER[self.kind]]

    @property
    def is_suspect(self) -> bool:
        """Whether the order looks foreign: torch's is less likely than all others together."""
        return self.torch_probability < SUSPECTED_BELOW

    @property
    def is_likely(self) -> bool:
        """Whether a foreign order is at least nine times as likely as torch's."""
        return self.torch_probability < LIKELY_BELOW

    @property
    def misplaced(self) -> tuple[str, int] | None:
        """The gate that most surely lies elsewhere, and its block from 0; None where none does."""
        torchs = TORCH_ORDER[self.kind]
        sure: dict[tuple[str, int], float] = {}
        for order, probability in self.probabilities.items():
            for block, letter in enumerate(order):
                if torchs[block] != letter:
                    sure[letter, block] = sure.get((letter, block), 0.0) + probability
        (letter, block), probability = max(sure.items(), key=lambda item: item[1])
        return (LETTERS[self.kind][letter], block) if probability > 0.5 else None


def score_gate_orders(kind: str, bias: Tensor | None) -> GateOrders | None:
    """Return how likely each order of gates is, given the effective bias of all rows.

    Args:
        kind: "lstm" or "gru".
        bias: (gates * hidden,), both bias vectors added, in the order of the file.

    Returns:
        None for a layer without gates or without biases, with fewer than 6 units, or with numbers
        that are not finite: then nothing can be said.

    >>> blocks = torch.tensor([0.1, 0.0, 2.0, -0.1], dtype=torch.float64)  # ONNX: i, o, f, g
    >>> noise = 0.1 * torch.linspace(-1, 1, 16, dtype=torch.float64)
    >>> scores = score_gate_orders("lstm", (blocks[:, None] + noise).flatten())
    >>> scores.is_suspect, scores.misplaced
    (True, ('forget', 2))
    """
    if kind not in TORCH_ORDER or bias is None or not bool(torch.isfinite(bias).all()):
        return None
    blocks = bias.detach().cpu().to(torch.float64).chunk(len(TORCH_ORDER[kind]))
    units = len(blocks[0])
    if units < _FEWEST_UNITS:
        return None
    # the mean of few units has a t distribution, whose variance is (n - 1) / (n - 3) times larger
    widening = math.sqrt((units - 1) / (units - 3) / units)
    means = tuple(float(block.mean()) for block in blocks)
    errors = tuple(float(block.std()) * widening for block in blocks)
    fits = [
        {letter: _log_fit(m, e, gate) for letter, gate in LETTERS[kind].items()}
        for m, e in zip(means, errors, strict=True)
    ]
    return GateOrders(kind, means, errors, _probabilities(kind, fits))


def gate_orders_of(cell: CellLike) -> GateOrders | None:
    """Return how likely each order of gates is for a cell; None where its biases cannot tell.

    Biases that torch drew and nobody has changed tell nothing, and of few units their means may
    lie anywhere.
    """
    if not isinstance(cell, Cell) or cell.bias_ih is None or cell.bias_hh is None:
        return None
    if has_drawn_biases(cell):
        return None
    return score_gate_orders(cell.kind, cell.bias_ih + cell.bias_hh)


def has_drawn_biases(cell: Cell) -> bool:
    """Return whether all biases lie where torch draws them, within 1 / sqrt(hidden) of 0.

    >>> from gradflow.cells import LSTM
    >>> has_drawn_biases(LSTM(3, 8))
    True
    """
    bound = cell.hidden_size**-0.5 * (1 + 2.0**-8)  # as bfloat16 rounds it
    vectors = [bias.detach() for bias in (cell.bias_ih, cell.bias_hh) if bias is not None]
    return all(bool((vector.abs() <= bound).all()) for vector in vectors)


def _log_fit(mean: float, error: float, gate: str) -> float:
    """Return ln of how probable a block's mean is for a gate."""
    density = 0.0
    for share, center, spread in _EXPECTED[gate]:
        variance = spread**2 + error**2
        exponent = -((mean - center) ** 2) / (2 * variance)
        density += share * math.exp(exponent) / math.sqrt(2 * math.pi * variance)
    return math.log(max(density, 1e-300))


def _probabilities(kind: str, fits: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the posterior of every order, the likeliest first."""
    orders = ["".join(order) for order in itertools.permutations(TORCH_ORDER[kind])]
    logs = {
        order: math.log(_prior(kind, order, len(orders)))
        + sum(fit[letter] for fit, letter in zip(fits, order, strict=True))
        for order in orders
    }
    top = max(logs.values())
    weights = {order: math.exp(value - top) for order, value in logs.items()}
    total = sum(weights.values())
    ranked = sorted(orders, key=lambda order: -weights[order])
    return {order: weights[order] / total for order in ranked}


def _prior(kind: str, order: str, count: int) -> float:
    if order == TORCH_ORDER[kind]:
        return _PRIOR_TORCH
    known = PROGRAMS[kind]
    if order in known:
        return _PRIOR_KNOWN / (len(known) - 1)
    return (1 - _PRIOR_TORCH - _PRIOR_KNOWN) / (count - len(known))
