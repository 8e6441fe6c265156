"""How one set of weights reaches both sides, and how gradients come back to it.

The set is torch's own layout where both sides' gates were found; the weights of A where a weight
map says how B is filled from them; or plain names, where both sides have the same names and shapes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from gradflow.checkpoints.sides import STANDARD_ORDER, Layout, Side, Weights
from gradflow.checkpoints.sides.affine_map import AffineMap
from gradflow.checkpoints.sides.find_layout import find_layout
from gradflow.checkpoints.sides.weight_map import WeightMap, read_gate_order
from gradflow.errors import CellLoadError
from gradflow.records.parity import MappedBlock


class Link(ABC):
    """The way from the common weights to a side's, and of gradients back."""

    @abstractmethod
    def fill(self, common: Weights) -> Weights:
        """Return the side's weights."""

    @abstractmethod
    def pull(self, gradients: Weights) -> Weights:
        """Return dL by the common weights."""


class LayoutLink(Link):
    """By a layout: the common weights are in torch's."""

    def __init__(self, side: Side, layout: Layout) -> None:
        self.layout = layout
        self._own = side.weights

    def fill(self, common: Weights) -> Weights:
        """Return the side's weights, blocks put in their places."""
        return self.layout.fill(common, self._own)

    def pull(self, gradients: Weights) -> Weights:
        """Return the gradients' blocks in torch's layout."""
        return self.layout.pull(gradients)


class NameLink(Link):
    """By name: the common weights are the side's own."""

    def fill(self, common: Weights) -> Weights:
        """Return them."""
        return dict(common)

    def pull(self, gradients: Weights) -> Weights:
        """Return them."""
        return dict(gradients)


class MapLink(Link):
    """By a user's map from A's weights to B's, after A's own link."""

    def __init__(self, first: Link, mapping: AffineMap, like: Weights) -> None:
        self._first, self._map, self._like = first, mapping, like

    def fill(self, common: Weights) -> Weights:
        """Return B's weights; what the map leaves out keeps B's own values."""
        return self._like | self._map.apply(self._first.fill(common))

    def pull(self, gradients: Weights) -> Weights:
        """Return dL by the common weights, through the map and then A's link."""
        return self._first.pull(self._map.transpose(gradients))


@dataclass(frozen=True)
class Pair:
    """Two sides and the links to both from one set of weights.

    `kind` is None where the common weights are not in torch's layout; then no gate is known.
    `given` are the lines of a weight map, B's place and A's.
    """

    a: Side
    b: Side
    link_a: Link
    link_b: Link
    kind: str | None
    given: tuple[tuple[str, str], ...] = ()

    @property
    def layouts(self) -> tuple[Layout | None, Layout | None]:
        """Where the gates stand in each side, None where a side goes by a map or by names."""
        found = [getattr(link, "layout", None) for link in (self.link_a, self.link_b)]
        return found[0], found[1]


def link_sides(a: Side, b: Side, weight_map: WeightMap | None = None) -> Pair:
    """Return how both sides are filled from one set of weights.

    Args:
        a, b: the sides; neither is a recording.
        weight_map: the user's word on B.

    Raises:
        CellLoadError: the sides are of two kinds, or no way between their weights is found.
        SettingError: a gate order that is none.
    """
    order = _order(b, weight_map)
    faults: list[CellLoadError] = []
    layout_a = _layout(a, None, faults)
    full = weight_map is not None and weight_map.is_full
    layout_b = None if full else _layout(b, order, faults)
    kinds = {layout.kind for layout in (layout_a, layout_b) if layout is not None}
    if len(kinds) > 1:
        raise CellLoadError(_of_two_kinds(a, b, layout_a, layout_b))
    link_a: Link = NameLink() if layout_a is None else LayoutLink(a, layout_a)
    kind = layout_a.kind if layout_a is not None else None
    if full and weight_map is not None:
        mapping = weight_map.between(a.weights, b.weights)
        link_b = MapLink(link_a, mapping, b.weights)
        return Pair(a, b, link_a, link_b, kind, given=weight_map.rows)
    if layout_a is not None and layout_b is not None:
        return Pair(a, b, link_a, LayoutLink(b, layout_b), kind)
    if _alike(a, b):
        return Pair(a, b, NameLink(), NameLink(), None)
    raise faults[0]


def mapped_blocks(pair: Pair) -> tuple[MappedBlock, ...]:
    """Return the table of a pair's blocks: gate, what it reads, and the places on both sides."""
    if pair.given:
        return tuple(MappedBlock("as given", "", a, b) for b, a in pair.given)
    one, other = pair.layouts
    if pair.kind is None or one is None or other is None:
        return ()
    rows = []
    for gate in STANDARD_ORDER[pair.kind]:
        for reads, sources in _rows(one, other):
            texts = [_places(layout, gate, sources) for layout in (one, other)]
            rows.append(MappedBlock(gate, reads, *texts))
    return tuple(rows)


def _rows(one: Layout, other: Layout) -> list[tuple[str, tuple[str, ...]]]:
    """Return the rows of a gate: both biases in one where a side has one for both."""
    biases = {*one.biases, *other.biases}
    rows = [("x", ("x",)), ("h", ("h",))]
    if "bias" in biases:
        return [*rows, ("bias", ("bias", "bias_ih", "bias_hh"))]
    return [*rows, *((name, (name,)) for name in ("bias_ih", "bias_hh") if name in biases)]


def _places(layout: Layout, gate: str, sources: Sequence[str]) -> str:
    found = [layout.of(gate, reads) for reads in sources]
    return " + ".join(str(block) for block in found if block is not None)


def _order(b: Side, weight_map: WeightMap | None) -> tuple[str, ...] | None:
    if weight_map is None or weight_map.gate_order is None:
        return None
    kind = b.kind or ("lstm" if len(b.parts) > 1 else "gru")
    return read_gate_order(weight_map.gate_order, kind)


def _layout(side: Side, order: Sequence[str] | None, faults: list[CellLoadError]) -> Layout | None:
    if side.layout is not None and order is None:
        return side.layout
    try:
        side.layout = find_layout(side, order)
    except CellLoadError as fault:
        faults.append(fault)
        return None
    side.kind = side.layout.kind
    return side.layout


def _alike(a: Side, b: Side) -> bool:
    shapes = [{name: t.shape for name, t in side.weights.items()} for side in (a, b)]
    return bool(shapes[0]) and shapes[0] == shapes[1] and a.parts == b.parts


def _of_two_kinds(a: Side, b: Side, one: Layout | None, other: Layout | None) -> str:
    kinds = [layout.kind.upper() if layout else "?" for layout in (one, other)]
    return (
        f"the two sides must be of one kind to be equal; {a.name} is an {kinds[0]} and {b.name} "
        f"an {kinds[1]}."
    ).replace("an GRU", "a GRU")
