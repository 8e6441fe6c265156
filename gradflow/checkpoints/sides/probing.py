"""What does a weight multiply? Asked of the recurrence itself, because shapes do not always tell.

With input 5 and hidden 5 a (5, 5) matrix may read x or h, from the left or from the right, and a
(5, 10) matrix may read [x, h] or [h, x]. But with every weight of a cell at one constant, all units
are alike, and the derivative of any loss by a matrix W that multiplies v is

    dL/dW[a, b] = k_a v_b

so its rows (its columns, where W multiplies from the right) are multiples of v itself. x and h are
drawn at random, so no other vector is proportional to either by chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gradflow.checkpoints.sides.protocol import Problem, Side

WEIGHT, BIAS = 0.1, 0.5  # far from where any gate is flat; the candidate must not be 0
SAME_DIRECTION = 1e-5  # finite differences leave 1e-9, another vector is 1e-1 away


@dataclass(frozen=True)
class Reading:
    """What a matrix multiplies: "x", "h" or "xh" joined, and where along its inner axis.

    `transposed` says that rows are inputs (v @ W). `x` and `h` are the entries of the inner axis
    that multiply each; None where it does not.
    """

    x: slice | None
    h: slice | None
    transposed: bool

    @property
    def reads(self) -> str:
        """Return "x", "h" or "xh"."""
        return ("x" if self.x else "") + ("h" if self.h else "")

    def outer(self, shape: torch.Size) -> int:
        """Return how many rows of pre-activations a matrix of this shape makes."""
        return int(shape[1] if self.transposed else shape[0])


def probe_matrices(side: Side, names: list[str]) -> dict[str, list[Reading]]:
    """Return what each of these matrices multiplies; all that it may where that stays open.

    Nothing is found of a matrix that gets no gradient, or of a cell whose units are never alike.

    One matrix fits both ways round: the reset gate's on h, where the reset comes before the
    product, has k_a = k h_a too. A second probe makes the units unlike by their biases and by what
    reads x; then only the right way fits.
    """
    clear = side.clear_twin()
    if clear is not side:
        told = probe_matrices(clear, names)
        shapes = {name: tensor.shape for name, tensor in side.weights.items()}
        return {name: [_stretched(one, shapes[name], side) for one in told[name]] for name in names}
    tensors = side.weights
    weights = {
        name: torch.full_like(tensor, WEIGHT if name in names else BIAS)
        for name, tensor in tensors.items()
    }
    fits = _fits(side, weights, names)
    if side.input_size == side.hidden_size == 1:
        return _of_single_numbers(side, weights, names)
    if any(len(found) > 1 for found in fits.values()):
        on_x = [name for name, found in fits.items() if found and found[0].reads == "x"]
        generator = torch.Generator().manual_seed(12)
        for name in (name for name in weights if name in on_x or name not in names):
            drawn = torch.randn(weights[name].shape, dtype=torch.float64, generator=generator)
            weights[name] = weights[name] + drawn
        unlike = _fits(side, weights, names)
        for name, found in fits.items():
            fits[name] = [one for one in found if one in unlike[name]] or found
    return fits


def _stretched(reading: Reading, shape: torch.Size, side: Side) -> Reading:
    """Return the same reading at a side's own widths."""
    possible = readings_by_shape(shape, side.input_size, side.hidden_size)
    return next(
        one
        for one in possible
        if (one.reads, one.transposed) == (reading.reads, reading.transposed)
        and (one.reads != "xh" or _x_first(one) == _x_first(reading))
    )


def _x_first(reading: Reading) -> bool:
    return reading.x is not None and reading.x.start == 0


def _of_single_numbers(
    side: Side, weights: dict[str, Tensor], names: list[str]
) -> dict[str, list[Reading]]:
    """Return what 1 by 1 matrices multiply: all vectors are parallel, but 0 times W moves nothing.

    With x = 0 the weights on x have no gradient.
    """
    at_zero = _gradients(side, weights, x_scale=0.0)[0]
    usual = _gradients(side, weights)[0]
    found: dict[str, list[Reading]] = {}
    for name in names:
        whole = slice(0, 1)
        if not torch.any(usual[name]):
            found[name] = []
        elif at_zero[name].numel() == 2:
            first_on_x = not bool(at_zero[name].reshape(-1)[0])
            possible = readings_by_shape(usual[name].shape, 1, 1)
            both = [one for one in possible if one.reads == "xh"]
            found[name] = [one for one in both if (one.x == whole) == first_on_x]
        elif torch.any(at_zero[name]):
            found[name] = [Reading(None, whole, transposed=False)]
        else:
            found[name] = [Reading(whole, None, transposed=False)]
    return found


def _fits(side: Side, weights: dict[str, Tensor], names: list[str]) -> dict[str, list[Reading]]:
    """Return all that each matrix may multiply, by its gradient at these weights."""
    gradients, x, h = _gradients(side, weights)
    return {name: _readings(gradients[name], x, h) for name in names}


def _gradients(
    side: Side, weights: dict[str, Tensor], *, x_scale: float = 1.0
) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """Return dL by the weights for one step from a random x and state, and those two vectors."""
    generator = torch.Generator().manual_seed(11)

    def normal(width: int) -> Tensor:
        # two rows alike: some code cannot do without a batch
        return torch.randn(1, width, dtype=torch.float64, generator=generator).repeat(2, 1)

    x = x_scale * normal(side.input_size)
    state = tuple(normal(side.hidden_size) for _ in side.parts)
    problem = Problem(
        xs=x[None],
        state=state,
        read_h=normal(side.hidden_size)[None],
        read_last=tuple(normal(side.hidden_size) for _ in side.parts),
    )
    return side.gradients(weights, problem).weights, x[0], state[0][0]


def readings_by_shape(shape: torch.Size, input_size: int, hidden_size: int) -> list[Reading]:
    """Return all that a matrix of this shape can multiply; joined ones as [x, h], then [h, x]."""
    joined = input_size + hidden_size
    wholes = {
        input_size: [Reading(slice(0, input_size), None, False)],
        hidden_size: [Reading(None, slice(0, hidden_size), False)],
    }
    if input_size == hidden_size:
        whole = slice(0, hidden_size)
        wholes[hidden_size] = [Reading(whole, None, False), Reading(None, whole, False)]
    if joined not in wholes:
        wholes[joined] = []
    wholes[joined] = [
        *wholes[joined],
        Reading(slice(0, input_size), slice(input_size, joined), False),
        Reading(slice(hidden_size, joined), slice(0, hidden_size), False),
    ]
    found = []
    for transposed in (False, True):
        out, into = (shape[1], shape[0]) if transposed else (shape[0], shape[1])
        if out % hidden_size == 0:
            found += [replace(one, transposed=transposed) for one in wholes.get(into, [])]
    return found


def _readings(gradient: Tensor, x: Tensor, h: Tensor) -> list[Reading]:
    found = []
    for reading in readings_by_shape(gradient.shape, len(x), len(h)):
        rows = gradient.T if reading.transposed else gradient
        fits = [
            part is None or _along(rows[:, part], vector)
            for part, vector in ((reading.x, x), (reading.h, h))
        ]
        if all(fits):
            found.append(reading)
    return found


def _along(rows: Tensor, vector: Tensor) -> bool:
    """Return whether every row is a multiple of the vector, and not all are zero."""
    unit = vector / vector.norm()
    lengths = rows.norm(dim=1)
    if not torch.any(lengths > 0):
        return False
    off = rows - (rows @ unit)[:, None] * unit
    return bool(off.norm(dim=1).max() <= SAME_DIRECTION * lengths.max())


def is_bias(name: str, shape: torch.Size, input_size: int) -> bool:
    """Return whether a tensor is a bias: one axis, or an axis of one that is not the input's."""
    if len(shape) < 2:
        return True
    named = name.rpartition(".")[2].lower().startswith("b")
    return 1 in shape and (named or input_size != 1)


def split_tensors(
    tensors: Mapping[str, Tensor], input_size: int
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the matrices and the biases among a side's tensors."""
    biases = {n: t for n, t in tensors.items() if is_bias(n, t.shape, input_size)}
    return {n: t for n, t in tensors.items() if n not in biases}, biases
