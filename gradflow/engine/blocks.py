"""Which block of the state's Jacobian is meant: ("c", "c"), ("h", "c"), ... or "joint"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from gradflow.cells.shapes import State
from gradflow.errors import UnknownNameError, nearest_name

BlockName = tuple[str, str] | Literal["joint"]
Norm = Literal["spectral", "frobenius"]


@dataclass(frozen=True)
class BlockPlace:
    """The rows (new state) and columns (old state) of a block within the joint state."""

    name: BlockName
    rows: slice
    columns: slice
    state_size: int


def locate_block(name: object, parts: tuple[str, ...], state: State) -> BlockPlace:
    """Return where a named block lies in the joint Jacobian.

    Args:
        name: "joint", or (row part, column part): the part of s_T that is read, the part of s_0
            that is varied while the others are held fixed.
        parts: the names of the cell's parts.
        state: a state of the cell, for the widths.

    Raises:
        UnknownNameError: the cell has no such part.
    """
    widths = [part.shape[-1] for part in state]
    total = sum(widths)
    if name == "joint":
        return BlockPlace("joint", slice(0, total), slice(0, total), total)
    spans = {}
    for part, width, end in zip(parts, widths, _running_sum(widths), strict=True):
        spans[part] = slice(end - width, end)
    if not isinstance(name, tuple | list) or len(name) != 2 or "joint" in name:
        raise UnknownNameError(
            "a block is 'joint', or a pair of parts, the one that is read and the one that is "
            f"varied, such as {(parts[0], parts[0])}; got {name!r}."
        )
    row, column = name
    for part in (row, column):
        if part not in spans:
            known = nearest_name(str(part), [*spans, "joint"])
            raise UnknownNameError(f"the cell's state has no part {part!r}. {known}")
    return BlockPlace((row, column), spans[row], spans[column], total)


def require_norm(norm: object) -> None:
    """Raise unless the norm is a known one."""
    if norm not in get_args(Norm):
        known = nearest_name(str(norm), get_args(Norm))
        raise UnknownNameError(f"there is no norm {norm!r}. {known}")


def _running_sum(widths: list[int]) -> list[int]:
    return [sum(widths[: index + 1]) for index in range(len(widths))]
