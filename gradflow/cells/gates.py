"""What a gate is: a name, a role, and the rows of the parameters that are its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from gradflow.errors import CellLoadError, UnknownNameError, nearest_name

Role = Literal["keep", "write", "output", "reset", "candidate"]
ROLES: tuple[str, ...] = get_args(Role)
KEYS = ("name", "role", "bias", "weights", "recurrent")

_PLACE = re.compile(r"^(?P<name>[\w.]+)\s*(\[(?P<rows>[^\],]*)(,(?P<columns>[^\],]*))?\])?$")
_RANGE = re.compile(r"^\s*-?\d*\s*(:\s*-?\d*\s*){0,2}$")


@dataclass(frozen=True)
class Rows:
    """Some rows (and, for a weight, columns) of one named parameter.

    Written as text: `"lin.weight[3:6]"`, `"lin.weight[3:6, 2:5]"` or `"bias"` (all of it). Where
    the module computes `x @ weight` and not `x @ weight.T`, a gate owns columns:
    `"weight[:, 3:6]"`.
    """

    parameter: str
    rows: slice = field(default_factory=lambda: slice(None))
    columns: slice = field(default_factory=lambda: slice(None))

    def __str__(self) -> str:
        """Return the written form."""
        if self.columns == slice(None):
            return self.parameter if self.rows == slice(None) else f"{self.parameter}[{self._rows}]"
        return f"{self.parameter}[{self._rows}, {_written(self.columns)}]"

    @property
    def _rows(self) -> str:
        return _written(self.rows)

    def weight_of(self, module: nn.Module) -> Tensor:
        """Return these rows and columns of a weight, as a view (leading axes are kept)."""
        return parameter_of(module, self.parameter)[..., self.rows, self.columns]

    def bias_of(self, module: nn.Module) -> Tensor:
        """Return these rows of a bias, as a view (leading axes are kept)."""
        return parameter_of(module, self.parameter)[..., self.rows]

    @classmethod
    def parse(cls, text: str) -> Rows:
        """Read the written form.

        >>> Rows.parse("lin.weight[3:6, 2:5]")
        Rows(parameter='lin.weight', rows=slice(3, 6, None), columns=slice(2, 5, None))
        >>> str(Rows.parse("lin.bias[3:]"))
        'lin.bias[3:]'

        Raises:
            CellLoadError: the text is not of that form.
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
    A gate is a sigmoid of its pre-activation.
    """

    name: str
    role: Role
    bias: tuple[Rows, ...] = ()
    weights: tuple[Rows, ...] = ()
    recurrent: Rows | None = None

    def effective_bias(self, module: nn.Module) -> Tensor | None:
        """Return what all the bias vectors add up to, (width,), or None for a gate without bias.

        Setting both of torch's bias vectors to 1 makes it 2, not 1.
        """
        if not self.bias:
            return None
        return torch.stack([rows.bias_of(module) for rows in self.bias]).sum(dim=0)

    def held_value(self, module: nn.Module) -> Tensor | None:
        """Return sigmoid of the effective bias, (width,), where the gate's weights are all zero.

        The gate then has this value at every input and state. None where they are not zero, or
        where the gate tells no bias or no weights (nobody knows then what else feeds it).
        """
        bias = self.effective_bias(module)
        if bias is None or not self.weights:
            return None
        if any(torch.any(rows.weight_of(module)) for rows in self.weights):
            return None
        return torch.sigmoid(bias)

    @classmethod
    def declare(cls, declaration: object) -> Gate:
        """Return the gate that a user's cell declares, as a `Gate` or as a plain dict.

        Args:
            declaration: keys `name`, `role`, and `bias`, `weights` (each one text or a list of
                texts in the form of `Rows.parse`), and for the candidate `recurrent`.

        Raises:
            CellLoadError: a key is missing or unknown, or the role does not exist.
        """
        if isinstance(declaration, Gate):
            return declaration
        if not isinstance(declaration, Mapping):
            raise CellLoadError(
                "a gate is declared by a gradflow.cells.Gate or a dict such as "
                "{'name': 'forget', 'role': 'keep', 'bias': 'lin.bias[3:6]', 'weights': "
                f"'lin.weight[3:6]'}}; got a {type(declaration).__name__}."
            )
        _require_keys(declaration)
        recurrent = _parse_places(declaration, "recurrent")
        if len(recurrent) > 1:
            raise CellLoadError(
                f"gate {declaration['name']!r} has one recurrent block; got {len(recurrent)}."
            )
        return cls(
            name=declaration["name"],
            role=declaration["role"],
            bias=_parse_places(declaration, "bias"),
            weights=_parse_places(declaration, "weights"),
            recurrent=recurrent[0] if recurrent else None,
        )


def parameter_of(module: nn.Module, name: str) -> nn.Parameter:
    """Return a parameter of the module by its dotted name.

    Raises:
        UnknownNameError: there is none; the message offers the nearest.
    """
    parameters = dict(module.named_parameters(remove_duplicate=False))
    if name not in parameters:
        kind = "is a buffer, not a parameter" if name in dict(module.named_buffers()) else "is none"
        raise UnknownNameError(
            f"a gate's rows are rows of parameters, and {name!r} {kind} of this cell. "
            f"{nearest_name(name, parameters)}"
        )
    return parameters[name]


def _require_keys(declaration: Mapping[Any, Any]) -> None:
    for key in declaration:
        if key not in KEYS:
            raise CellLoadError(f"a gate has no key {key!r}. {nearest_name(str(key), KEYS)}")
    for key in ("name", "role"):
        if key not in declaration:
            raise CellLoadError(f"a gate needs the key {key!r}; got {dict(declaration)}.")
    name, role = declaration["name"], declaration["role"]
    if not (isinstance(name, str) and name.isidentifier()):
        raise CellLoadError(
            f"a gate's name is a plain word, because hold_ takes it as an argument; got {name!r}."
        )
    if role not in ROLES:
        raise CellLoadError(f"gate {name!r} has no role {role!r}. {nearest_name(str(role), ROLES)}")


def _parse_places(declaration: Mapping[Any, Any], key: str) -> tuple[Rows, ...]:
    given = declaration.get(key)
    places = () if given is None else (given,) if isinstance(given, str | Rows) else tuple(given)
    for place in places:
        if not isinstance(place, str | Rows):
            raise CellLoadError(
                f"gate {declaration['name']!r}: {key} lists texts such as 'lin.bias[3:6]'; "
                f"got a {type(place).__name__}."
            )
    return tuple(place if isinstance(place, Rows) else Rows.parse(place) for place in places)


def _parse_slice(text: str | None) -> slice:
    if text is None or not text.strip():
        return slice(None)
    if ":" not in text or not _RANGE.match(text):
        raise CellLoadError(f"rows are a range of whole numbers such as 3:6; got {text.strip()!r}.")
    return slice(*(int(bound) if bound.strip() else None for bound in text.split(":")))


def _written(rows: slice) -> str:
    bounds = (rows.start, rows.stop) if rows.step is None else (rows.start, rows.stop, rows.step)
    return ":".join("" if bound is None else str(bound) for bound in bounds)
