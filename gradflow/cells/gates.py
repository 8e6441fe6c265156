"""What a gate is: a name, a role, and the rows of the parameters that are its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from torch import Tensor, nn

from gradflow.errors import CellLoadError, UnknownNameError, nearest_name

Role = Literal["keep", "write", "output", "reset", "candidate"]
ROLES: tuple[str, ...] = get_args(Role)

_PLACE = re.compile(r"^(?P<name>[\w.]+)(\[(?P<rows>[^\],]*)(,(?P<columns>[^\],]*))?\])?$")


@dataclass(frozen=True)
class Rows:
    """Some rows (and, for a weight, columns) of one named parameter.

    Written as text: `"lin.weight[3:6]"`, `"lin.weight[3:6, 2:5]"` or `"bias"` (all of it).
    """

    parameter: str
    rows: slice = field(default_factory=lambda: slice(None))
    columns: slice = field(default_factory=lambda: slice(None))

    def weight_of(self, module: nn.Module) -> Tensor:
        """Return these rows and columns of a weight, as a view (leading axes are kept)."""
        return _parameter(module, self.parameter)[..., self.rows, self.columns]

    def bias_of(self, module: nn.Module) -> Tensor:
        """Return these rows of a bias, as a view (leading axes are kept)."""
        return _parameter(module, self.parameter)[..., self.rows]

    @classmethod
    def parse(cls, text: str) -> Rows:
        """Read the written form.

        >>> Rows.parse("lin.weight[3:6, 2:5]")
        Rows(parameter='lin.weight', rows=slice(3, 6, None), columns=slice(2, 5, None))
        """
        match = _PLACE.match(text.strip())
        if match is None:
            raise CellLoadError(
                f"a gate's rows are written like 'bias[3:6]' or 'weight[3:6, 0:4]'; got {text!r}."
            )
        return cls(match["name"], _parse_slice(match["rows"]), _parse_slice(match["columns"]))


@dataclass(frozen=True)
class Gate:
    """One gate (or the candidate) of a cell.

    `bias` and `weights` name every row that feeds the gate's pre-activation; the effective bias
    is the sum over `bias` (torch has two bias vectors). `recurrent` names the square block that
    reads the old state, where the gate has one; only the candidate needs it, for its gain.
    """

    name: str
    role: Role
    bias: tuple[Rows, ...] = ()
    weights: tuple[Rows, ...] = ()
    recurrent: Rows | None = None

    @classmethod
    def declare(cls, declaration: Gate | Mapping[str, Any]) -> Gate:
        """Return the gate that a user's cell declares, as a `Gate` or as a plain dict.

        Args:
            declaration: keys `name`, `role`, and `bias`, `weights` (each one text or a list of
                texts in the form of `Rows.parse`), and for the candidate `recurrent`.

        Raises:
            CellLoadError: a key is missing or unknown, or the role does not exist.
        """
        if isinstance(declaration, Gate):
            return declaration
        known = {"name", "role", "bias", "weights", "recurrent"}
        if unknown := set(declaration) - known:
            name = sorted(unknown)[0]
            raise CellLoadError(f"a gate has no key {name!r}. {nearest_name(name, known)}")
        if missing := {"name", "role"} - set(declaration):
            raise CellLoadError(f"a gate needs the key {sorted(missing)[0]!r}; got {declaration}.")
        if declaration["role"] not in ROLES:
            role = str(declaration["role"])
            raise CellLoadError(
                f"gate {declaration['name']!r} has no role {role!r}. {nearest_name(role, ROLES)}"
            )
        recurrent = declaration.get("recurrent")
        return cls(
            name=declaration["name"],
            role=declaration["role"],
            bias=_parse_places(declaration.get("bias", ())),
            weights=_parse_places(declaration.get("weights", ())),
            recurrent=None if recurrent is None else Rows.parse(recurrent),
        )


def _parse_places(places: str | tuple[str, ...] | list[str]) -> tuple[Rows, ...]:
    texts = (places,) if isinstance(places, str) else places
    return tuple(Rows.parse(text) for text in texts)


def _parse_slice(text: str | None) -> slice:
    if text is None or not text.strip():
        return slice(None)
    bounds = [int(bound) if bound.strip() else None for bound in text.split(":")]
    if len(bounds) == 1:
        raise CellLoadError(f"rows are a range such as 3:6, not the single number {text.strip()}.")
    return slice(*bounds)


def _parameter(module: nn.Module, name: str) -> Tensor:
    parameters = dict(module.named_parameters())
    if name not in parameters:
        raise UnknownNameError(
            f"the cell has no parameter {name!r} to hold. {nearest_name(name, parameters)}"
        )
    return parameters[name]
