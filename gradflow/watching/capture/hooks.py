"""Hooks on a user's modules and graph: they never raise, and a copy of the model has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge


class Hook:
    """A hook that does nothing in a copied or unpickled model.

    A model is copied (weights averaged over time) and stored while it is watched; neither the copy
    nor the file must hold on to the watch.
    """

    def __init__(self, action: Callable[..., None]) -> None:
        self._action = action

    def __call__(self, *arguments: Any) -> None:
        """Do what is to be done; the answer is None, which changes nothing.

        In code that torch.compile traces nothing is done: it would break the graph at every step.
        """
        if not torch.compiler.is_compiling():
            self._action(*arguments)

    def __reduce__(self) -> tuple[Callable[[], Any], tuple[()]]:
        return _unwatched, ()


class LayerHook(Hook):
    """A hook on a layer that torch.compile leaves alone: it is never traced, and always runs."""

    def __init__(self, action: Callable[..., None]) -> None:
        super().__init__(torch.compiler.disable(action))

    def __call__(self, *arguments: Any) -> None:
        """Do what is to be done."""
        self._action(*arguments)


def not_watched(*_: Any) -> None:
    """Take the place of a hook in a copy."""


def _unwatched() -> Callable[..., None]:
    return not_watched


class Arrival:
    """Reads the gradient of one tensor as its node in the graph gets it.

    A hook on the node comes after all hooks on the tensor: what a user clips there arrives clipped.
    The node holds it, so it lives as long as the graph does.
    """

    def __init__(self, number: int, action: Callable[[Tensor], None]) -> None:
        self._number, self._action = number, action

    def __call__(self, gradients: Sequence[Tensor | None]) -> None:
        """Hand the gradient on; None, and so no change, is the answer."""
        gradient = gradients[self._number]
        if gradient is not None:
            self._action(gradient)


def on_arrival(values: Tensor, action: Callable[[Tensor], None], *, of_torch: bool = False) -> None:
    """Call `action(gradient)` whenever a backward pass brings the whole gradient of a tensor.

    Args:
        values: an output or a state.
        action: takes the gradient, in the layout of `values`.
        of_torch: whether torch's own layer or cell made it, which may have turned it round last.
    """
    edge = get_gradient_edge(values)
    node, number, laid_out = _below_views(edge) if of_torch else (*edge[:2], _as_it_is)
    node.register_prehook(Arrival(number, lambda gradient: action(laid_out(gradient))))


def makers_of(values: Sequence[Tensor]) -> set[Node]:
    """Return the nodes that made the numbers of torch's own layer or cell."""
    return {_below_views(get_gradient_edge(each))[0] for each in values if each.requires_grad}


def _as_it_is(gradient: Tensor) -> Tensor:
    return gradient


def _below_views(edge: GradientEdge) -> tuple[Node, int, Callable[[Tensor], Tensor]]:
    """Return the node that made the numbers, and what brings its gradient to the tensor's layout.

    A layer turns its output round for `batch_first` and takes the batch away where it was given
    none, or both. Where a user then writes into that view (a mask, an inplace dropout), its node
    leaves the graph; this one stays.
    """
    node, number, views = edge.node, edge.output_nr, list[Callable[[Tensor], Tensor]]()
    for name, view_of in _VIEWS.items():
        if not node.name().startswith(name):
            continue
        below, place = node.next_functions[0]
        if below is not None:
            views.insert(0, view_of(node))
            node, number = below, place

    def laid_out(gradient: Tensor) -> Tensor:
        return reduce(lambda values, view: view(values), views, gradient)

    return node, number, laid_out


def _squeezed(node: Any) -> Callable[[Tensor], Tensor]:
    return partial(torch.squeeze, dim=node._saved_dim)  # the batch's place is not always the same


def _transposed(_: Node) -> Callable[[Tensor], Tensor]:
    return partial(torch.transpose, dim0=0, dim1=1)


# from the last one that a layer makes to the first
_VIEWS: dict[str, Callable[[Node], Callable[[Tensor], Tensor]]] = {
    "SqueezeBackward1": _squeezed,
    "TransposeBackward": _transposed,
}


def is_recorded(values: object) -> bool:
    """Return whether autograd records a tensor, so that a backward pass can reach it."""
    return isinstance(values, Tensor) and values.requires_grad and torch.is_grad_enabled()


def in_backward() -> bool:
    """Return whether a backward pass is running, as where a checkpointed layer is run again."""
    running = getattr(torch._C, "_current_graph_task_id", None)
    return running is not None and running() != -1


def is_traced() -> bool:
    """Return whether torch.jit traces what is computed now, ours with the rest."""
    return bool(torch.jit.is_tracing())  # type: ignore[attr-defined, no-untyped-call]
