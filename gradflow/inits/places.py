"""Where the weights of a recurrent module are: one `Place` for each layer and direction."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gradflow.cells import GRU, LSTM, RNN, Cell
from gradflow.errors import CellLoadError, GateValueError

_ROW_ORDERS = {"LSTM": LSTM.row_order, "GRU": GRU.row_order, "RNN": RNN.row_order}
_LAYERS = (nn.LSTM, nn.GRU, nn.RNN)
_CELLS = (nn.LSTMCell, nn.GRUCell, nn.RNNCell)
INITIALIZABLE = (*_LAYERS, *_CELLS, Cell)


@dataclass(frozen=True)
class Place:
    """The parameters of one layer and direction, the module's own (what is set here is set there).

    `rows` are the gates and the candidate by name, in torch's row order, with their roles.
    `weight_hr` is an LSTM's projection, None without one; the biases are None with `bias=False`.
    """

    name: str
    kind: str
    roles: tuple[tuple[str, str], ...]
    weight_ih: nn.Parameter
    weight_hh: nn.Parameter
    bias_ih: nn.Parameter | None
    bias_hh: nn.Parameter | None
    weight_hr: nn.Parameter | None = None

    @property
    def hidden_size(self) -> int:
        """The number of units."""
        return self.weight_ih.shape[0] // len(self.roles)

    @property
    def keep_gate(self) -> str | None:
        """The name of the gate that keeps: forget (LSTM), update (GRU), none (RNN)."""
        return next((name for name, role in self.roles if role == "keep"), None)

    def rows(self, gate: str) -> slice:
        """Return the rows that a gate owns in every parameter."""
        index = [name for name, _ in self.roles].index(gate)
        return slice(index * self.hidden_size, (index + 1) * self.hidden_size)

    def input_weight(self, gate: str) -> Tensor:
        """Return a gate's rows of weight_ih, (hidden, input)."""
        return self.weight_ih[self.rows(gate)]

    def recurrent_weight(self, gate: str) -> Tensor:
        """Return a gate's rows of weight_hh, (hidden, hidden or projection)."""
        return self.weight_hh[self.rows(gate)]

    def effective_bias(self, gate: str) -> Tensor | None:
        """Return the sum of both bias vectors, (hidden,), in float64; None with bias=False.

        A GRU's candidate has no such sum: its b_hh stands inside the reset gate. Its b_ih is
        returned, which is all of it where r = 0.
        """
        if self.bias_ih is None or self.bias_hh is None:
            return None
        own = self.bias_ih[self.rows(gate)].detach().to(torch.float64)
        if self.kind == "GRU" and gate == "candidate":
            return own
        return own + self.bias_hh[self.rows(gate)].detach().to(torch.float64)

    @torch.no_grad()
    def set_bias_(self, gate: str, values: Tensor | float) -> None:
        """Give a gate this effective bias: all of it in bias_ih, none in bias_hh.

        Raises:
            GateValueError: the module has no bias.
        """
        if self.bias_ih is None or self.bias_hh is None:
            raise GateValueError(
                f"the {gate} gate has no bias to set: the module was made with bias=False. "
                "Make it with bias=True, or use an initialization of weights alone."
            )
        rows = self.rows(gate)
        self.bias_ih[rows] = torch.as_tensor(values, dtype=torch.float64).to(self.bias_ih)
        self.bias_hh[rows] = 0.0


def recurrent_places(module: nn.Module) -> list[Place]:
    """Return the places of a recurrent module: layer 0, layer 0 reverse, layer 1, ...

    Args:
        module: torch.nn.LSTM, GRU or RNN, one of torch's recurrent cells, or one of gradflow's.

    Raises:
        CellLoadError: another kind of module (the message names the recurrent ones inside it), an
            ensemble, or weights that are computed and so cannot be set.

    >>> [place.name for place in recurrent_places(nn.GRU(3, 5, bidirectional=True))]
    ['layer 0', 'layer 0 reverse']
    """
    original = getattr(module, "_orig_mod", module)  # torch.compile's wrapper
    if not isinstance(original, INITIALIZABLE):
        raise CellLoadError(_refusal(original))
    if isinstance(original, _LAYERS):
        suffixes = [
            (level, way)
            for level in range(original.num_layers)
            for way in ("", "_reverse")[: 1 + original.bidirectional]
        ]
        return [
            _place(original, f"_l{level}{way}", f"layer {level}{way.replace('_', ' ')}")
            for level, way in suffixes
        ]
    return [_place(original, "", "cell")]


def _place(module: nn.Module, suffix: str, name: str) -> Place:
    kind = _kind(module)
    projected = getattr(module, "proj_size", 0) > 0
    place = Place(
        name=name,
        kind=kind,
        roles=_ROW_ORDERS[kind],
        weight_ih=_parameter(module, f"weight_ih{suffix}"),
        weight_hh=_parameter(module, f"weight_hh{suffix}"),
        bias_ih=_bias(module, f"bias_ih{suffix}"),
        bias_hh=_bias(module, f"bias_hh{suffix}"),
        weight_hr=_parameter(module, f"weight_hr{suffix}") if projected else None,
    )
    if place.weight_hh.dim() != 2:
        raise CellLoadError(
            "an ensemble has weights of its own for every batch row; initialize its members one by "
            "one, then stack them."
        )
    return place


def _kind(module: nn.Module) -> str:
    """Return "LSTM", "GRU" or "RNN", also for a subclass."""
    for kind, types in (
        ("LSTM", (nn.LSTM, nn.LSTMCell, LSTM)),
        ("GRU", (nn.GRU, nn.GRUCell, GRU)),
        ("RNN", (nn.RNN, nn.RNNCell, RNN)),
    ):
        if isinstance(module, types):
            return kind
    raise CellLoadError(
        f"the initializations know the rows of an LSTM, a GRU or an RNN, and a "
        f"{type(module).__name__} is none of them. Set its parameters yourself."
    )


def _bias(module: nn.Module, name: str) -> nn.Parameter | None:
    return _parameter(module, name) if getattr(module, name, None) is not None else None


def _parameter(module: nn.Module, name: str) -> nn.Parameter:
    own = dict(module.named_parameters(recurse=False)).get(name)
    if own is None:
        raise CellLoadError(
            f"{name} is no parameter of this {type(module).__name__} but computed (by weight norm, "
            "pruning or another parametrization), so setting it would change nothing. Initialize "
            "the module first, then parametrize it."
        )
    return own


def _refusal(module: object) -> str:
    known = "torch.nn.LSTM, GRU and RNN, their cells, and gradflow's cells"
    if not isinstance(module, nn.Module):
        return f"an initialization takes a module ({known}); got a {type(module).__name__}."
    inside = [
        (name, type(part).__name__)
        for name, part in module.named_modules()
        if name and isinstance(part, INITIALIZABLE)
    ]
    if not inside:
        return f"an initialization takes {known}; got a {type(module).__name__}."
    listing = ", ".join(f"{name} ({kind})" for name, kind in inside[:4])
    return (
        f"an initialization takes {known}; got a {type(module).__name__}. Inside it there is "
        f"{listing}: give that one, as model.{inside[0][0]}."
    )
