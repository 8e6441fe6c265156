"""Maps of weights, from A's to B's, and their transposes, which bring gradients back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradflow.cells.gates import Rows
from gradflow.checkpoints.sides.protocol import Weights, leaf
from gradflow.errors import CellCallError, CellLoadError, nearest_name

MapFunction = Callable[[Weights], Any]
MOST_BASIS = 20_000  # entries of A, one call of the function each, where it leaves torch


class AffineMap:
    """A map of weights that is linear, so that its transpose brings gradients back.

    Args:
        function: weights by name to weights by name.
        like: weights that it takes, for their names and shapes.
    """

    def __init__(self, function: MapFunction, like: Weights) -> None:
        self._function, self._like = function, like

    def apply(self, weights: Weights) -> Weights:
        """Return the other side's weights."""
        found = self._function({name: tensor.clone() for name, tensor in weights.items()})
        return {name: torch.as_tensor(value).double() for name, value in found.items()}

    def transpose(self, gradients: Weights) -> Weights:
        """Return dL by the weights that were mapped, from dL by those that came of it."""
        leaves = {name: leaf(tensor) for name, tensor in self._like.items()}
        with torch.enable_grad():
            answer = self._function({name: tensor * 1 for name, tensor in leaves.items()})
            known = {n: value for n, value in answer.items() if _has_graph(value)}
            if known:
                loss = torch.stack([(known[n] * gradients[n]).sum() for n in known]).sum()
                found: tuple[Tensor | None, ...] = torch.autograd.grad(
                    loss, list(leaves.values()), allow_unused=True
                )
                pairs = zip(leaves.items(), found, strict=True)
                return {
                    name: torch.zeros_like(tensor) if gradient is None else gradient
                    for (name, tensor), gradient in pairs
                }
        return self._by_basis(gradients)

    def _by_basis(self, gradients: Weights) -> Weights:
        """Return the same for a function that leaves torch: it is asked of every entry."""
        if sum(tensor.numel() for tensor in self._like.values()) > MOST_BASIS:
            raise CellCallError("a weight map of so many weights must compute in torch.")
        zero = {name: torch.zeros_like(tensor) for name, tensor in self._like.items()}
        origin = self.apply(zero)
        found = {name: torch.zeros_like(tensor) for name, tensor in self._like.items()}
        for name, tensor in zero.items():
            for entry in range(tensor.numel()):
                tensor.view(-1)[entry] = 1.0
                moved = self.apply(zero)
                tensor.view(-1)[entry] = 0.0
                slope = sum(((moved[n] - origin[n]) * gradients[n]).sum() for n in moved)
                found[name].view(-1)[entry] = slope
        return found


def _has_graph(value: object) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


@dataclass(frozen=True)
class _Source:
    place: Rows
    transposed: bool
    sign: float

    @classmethod
    def read(cls, text: str) -> _Source:
        plain = text.strip()
        sign = -1.0 if plain.startswith("-") else 1.0
        plain = plain.removeprefix("-").strip()
        return cls(Rows.parse(plain.removesuffix(".T")), plain.endswith(".T"), sign)

    def of(self, weights: Weights) -> Tensor:
        tensor = weights[self.place.parameter]
        found = (
            tensor[self.place.rows, self.place.columns]
            if tensor.dim() > 1
            else (tensor[self.place.rows])
        )
        return self.sign * (found.T if self.transposed else found)


@dataclass(frozen=True)
class MapLine:
    """One line of a map file: B's place, and the places of A that add up to it."""

    target: Rows
    sources: tuple[_Source, ...]

    @classmethod
    def read(cls, place: str, sources: str | Sequence[str]) -> MapLine:
        """Read a line: B's place, and A's or a list of them."""
        listed = [sources] if isinstance(sources, str) else list(sources)
        return cls(Rows.parse(place), tuple(_Source.read(text) for text in listed))

    def require_fit(self, a: Weights, b: Weights, name: str) -> None:
        """Raise unless the names exist and the shapes are equal."""
        places = [(self.target, b, "B"), *((source.place, a, "A") for source in self.sources)]
        for place, weights, side in places:
            if place.parameter not in weights:
                raise CellLoadError(
                    f"weight map {name}: {side} has no weight {place.parameter!r}. "
                    f"{nearest_name(place.parameter, weights)}"
                )
        wanted = self.in_target(b).shape
        for source in self.sources:
            if source.of(a).numel() != wanted.numel() or (
                len(wanted) > 1 and source.of(a).dim() > 1 and source.of(a).shape != wanted
            ):
                raise CellLoadError(
                    f"weight map {name}: {self.target} is {tuple(wanted)}, and what goes there, "
                    f"{source.place}{'.T' if source.transposed else ''}, is "
                    f"{tuple(source.of(a).shape)}."
                )

    def in_target(self, weights: Weights) -> Tensor:
        """Return B's place, as a view."""
        tensor = weights[self.target.parameter]
        if tensor.dim() > 1:
            return tensor[self.target.rows, self.target.columns]
        return tensor[self.target.rows]


def fill_lines(lines: Sequence[MapLine], weights: Weights, like: Weights) -> Weights:
    """Return B's tensors with every line's sum of A's places put in."""
    names = dict.fromkeys(line.target.parameter for line in lines)
    filled = {name: like[name].clone() for name in names}
    for line in lines:
        target = line.in_target(filled)
        values = [source.of(weights).reshape(target.shape) for source in line.sources]
        target.copy_(torch.stack(values).sum(dim=0))
    return filled
