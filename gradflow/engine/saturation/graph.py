"""Reading torch's autograd graph: what a step added to it, and whose rows a node works for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.autograd.graph import Node

# A product of a matrix and what is not a parameter ends the search for a node's own rows.
_PRODUCTS = ("AddmmBackward", "MmBackward", "BmmBackward", "BaddbmmBackward", "AddmvBackward")
_SQUASHES = ("SigmoidBackward", "TanhBackward", "ReluBackward")
# Behind these a column is no longer the row of a weight, or only after arithmetic on shapes.
_OPAQUE = ("CatBackward", "GatherBackward", "IndexBackward", "PermuteBackward", "SelectBackward",
           "StackBackward", "UnbindBackward", "UnsafeViewBackward", "ViewBackward")  # fmt: skip
_TURNS = ("PermuteBackward", "TBackward", "TransposeBackward")  # of a matrix: all the same
_CUTS = ("SliceBackward", "SplitBackward", "SplitWithSizesBackward", "UnsafeSplitBackward")


@dataclass(frozen=True)
class OwnRows:
    """Rows of a parameter that make a node's numbers: those from `first` on."""

    parameter: str
    first: int


@dataclass(frozen=True)
class ParameterEdge:
    """An edge (by index) from a node straight to a parameter, from its row `first` on.

    `turned` says that the node sees the parameter transposed. `by_rows` says that each column of
    what the node makes is the work of one row: so it is for a bias, and for a matrix in a product.
    """

    index: int
    parameter: str
    first: int
    turned: bool
    by_rows: bool


class StepGraph:
    """The autograd graph of an unrolled run, taken step by step.

    Args:
        parameters: the parameters by name, so that the graph's leaves have names.
    """

    def __init__(self, parameters: Mapping[str, Tensor]) -> None:
        self._names = {id(parameter): name for name, parameter in parameters.items()}
        self._seen: set[Node] = set()

    def added(self, state: Iterable[Tensor]) -> list[Node]:
        """Return the nodes that the new state needs and no earlier state did, leaves left out."""
        found: list[Node] = []
        ahead = [part.grad_fn for part in state if part.grad_fn is not None]
        while ahead:
            node = ahead.pop()
            if node in self._seen or leaf_of(node) is not None:
                continue
            self._seen.add(node)
            found.append(node)
            ahead += [inner for inner, _ in node.next_functions if inner is not None]
        return found

    def parameter_edges(self, node: Node) -> list[ParameterEdge]:
        """Return the edges of a node that lead to parameters through no arithmetic."""
        edges = []
        for index, (inner, piece) in enumerate(node.next_functions):
            turned, first = False, 0
            while inner is not None and _kind(inner) in (*_TURNS, *_CUTS):
                turned ^= _kind(inner) in _TURNS
                first += _offset(inner, piece, dim=0)
                inner, piece = inner.next_functions[0]  # noqa: PLW2901 - walks down
            leaf = None if inner is None else leaf_of(inner)
            if leaf is not None and id(leaf) in self._names:
                by_rows = leaf.dim() == 1 or (leaf.dim() == 2 and _kind(node) in _PRODUCTS)
                edges.append(ParameterEdge(index, self._names[id(leaf)], first, turned, by_rows))
        return edges

    def own_rows(self, node: Node) -> list[OwnRows]:
        """Return the rows of parameters that make what this node squashes.

        Follows sums, and the pieces that a stacked pre-activation was cut into, down to the
        products with weights and the biases.
        """
        found: list[OwnRows] = []
        seen: set[tuple[Node, int]] = set()
        ahead = [(inner, _offset(inner, piece)) for inner, piece in _edges(node)]
        while ahead:
            here, offset = ahead.pop()
            if (here, offset) in seen or _kind(here) in _SQUASHES:
                continue
            seen.add((here, offset))
            edges = self.parameter_edges(here)
            found += [OwnRows(edge.parameter, edge.first + offset) for edge in edges]
            if _kind(here) not in (*_PRODUCTS, *_OPAQUE):
                done = {edge.index for edge in edges}
                ahead += [
                    (inner, offset + _offset(inner, piece))
                    for index, (inner, piece) in enumerate(here.next_functions)
                    if inner is not None and index not in done
                ]
        return found


def leaf_of(node: Node) -> Tensor | None:
    """Return the leaf tensor (a parameter, a first state) whose gradient ends in this node."""
    leaf: Tensor | None = getattr(node, "variable", None)
    return leaf


def operation_name(node: Node) -> str:
    """Return what the node differentiates, as one writes it: "exp" for ExpBackward0.

    >>> import torch
    >>> operation_name(torch.exp(torch.ones(1, requires_grad=True)).grad_fn)
    'exp'
    """
    kind = _kind(node).removesuffix("Backward").rsplit("::", 1)[-1]
    letters = [f"_{c.lower()}" if c.isupper() else c for c in kind]
    return "".join(letters).lstrip("_") or node.name()


def squashed(nodes: Iterable[Node], name: str) -> Iterator[tuple[Node, Tensor]]:
    """Yield the nodes of a squashing function ("Sigmoid") with the values that it gave."""
    for node in nodes:
        if _kind(node) == f"{name}Backward":
            saved: Any = node
            yield node, saved._saved_result


def _kind(node: Node) -> str:
    return node.name().rstrip("0123456789")


def _edges(node: Node) -> list[tuple[Node, int]]:
    return [(inner, piece) for inner, piece in node.next_functions if inner is not None]


def _offset(node: Any, piece: int, dim: int = 1) -> int:
    """Return where a piece that a node cut off begins; 0 where it cuts along another axis."""
    kind = _kind(node)
    if kind not in _CUTS or _signed(node._saved_dim) % len(node._saved_self_sym_sizes) != dim:
        return 0
    if kind == "SliceBackward":
        start = _signed(node._saved_start or 0)
        return start if start >= 0 else start + int(node._saved_self_sym_sizes[dim])
    if kind == "SplitWithSizesBackward":
        return sum(int(size) for size in node._saved_split_sizes[:piece])
    return piece * int(node._saved_split_size)


def _signed(number: int) -> int:
    """Return the signed 64-bit number that torch shows as an unsigned one."""
    return number - 2**64 if number >= 2**63 else number
