"""What a step function's signature tells: which arguments are x, h, c, and which are weights.

    lstm_step(x, h, c, W_i, W_f, W_o, W_c, b_i, b_f, b_o, b_c)      one argument per weight
    lstm_step(x, h, c, parameters)                                  a dict; its keys are looked up
    lstm_step(x, state, W, b)                                       state = (h, c)

Arguments are told by their names, else by their place: x, then the state, then weights.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gradflow.errors import CellLoadError

X_NAMES = frozenset({"x", "xt", "inp", "inputs", "input", "xs", "xin", "inputt"})
H_NAMES = frozenset(
    {"h", "ht", "hx", "hprev", "prevh", "htm1", "ht1", "h0", "hidden", "aprev", "a", "hold", "oldh"}
    | {"state", "states", "s", "hc", "carry", "hiddenstate", "sprev", "prevstate", "hlast"}
)
C_NAMES = frozenset(
    {"c", "ct", "cx", "cprev", "prevc", "ctm1", "ct1", "c0", "cell", "cellstate", "cold", "oldc"}
    | {"prevcell", "clast"}
)
BUNDLES = frozenset({"params", "parameters", "weights", "p", "theta", "w", "ws", "param"})


@dataclass(frozen=True)
class Signature:
    """The arguments of a step function by what they are.

    `c` is None where the state is one argument; `bundle` names the dict that holds the weights,
    None where each weight is an argument.
    """

    x: str
    h: str
    c: str | None
    weights: tuple[str, ...]
    bundle: str | None
    by_place: tuple[str, ...]

    def arguments(
        self, x: object, state: tuple[object, ...], weights: dict[str, Any], *, packed: bool
    ) -> tuple[list[object], dict[str, object]]:
        """Return the call's arguments by place and by name."""
        named: dict[str, object] = {self.x: x}
        if self.c is None:
            named[self.h] = tuple(state) if packed else state[0]
        else:
            named[self.h], named[self.c] = state
        named |= {self.bundle: dict(weights)} if self.bundle else weights
        places = [named.pop(name) for name in self.by_place]
        return places, named


def looks_like_step(function: object) -> bool:
    """Return whether a callable is the step itself: its first argument is x, or h, or so called."""
    if inspect.isclass(function) or not callable(function):
        return False
    names = [_plain(name) for name in _needed(function)]
    return len(names) >= 2 and bool({names[0], names[1]} & X_NAMES)


def read_signature(function: Callable[..., object], name: str) -> Signature:
    """Return which arguments are x, the state and the weights.

    Args:
        function: the step.
        name: what it is called in messages.

    Raises:
        CellLoadError: an argument that nobody can fill, or no weights at all.
    """
    needed = _needed(function)
    plain = {argument: _plain(argument) for argument in needed}
    if len(needed) < 2:
        raise CellLoadError(
            f"{name}({', '.join(needed)}) must take the input, the old state and the weights, as "
            "in lstm_step(x, h, c, W_i, W_f, W_o, W_c, b_i, b_f, b_o, b_c)."
        )
    x = next((a for a in needed if plain[a] in X_NAMES), needed[0])
    rest = [a for a in needed if a != x]
    h = next((a for a in rest[:3] if plain[a] in H_NAMES), rest[0])
    rest.remove(h)
    c = next((a for a in rest[:1] if plain[a] in C_NAMES), None)
    if c is not None:
        rest.remove(c)
    bundle = rest[0] if len(rest) == 1 and _is_bundle(function, rest[0]) else None
    weights = tuple(_keys_of(function, bundle)) if bundle else tuple(rest)
    if not weights:
        keys = f"dict {bundle!r} it looks no weight up" if bundle else "it there is no weight"
        raise CellLoadError(
            f"{name}({', '.join(needed)}) must take its weights as arguments, or look them up in a "
            f"dict by name; in {keys}. A cell that keeps its weights is a torch.nn.Module."
        )
    kinds = inspect.signature(function).parameters
    by_place = tuple(a for a in needed if kinds[a].kind is inspect.Parameter.POSITIONAL_ONLY)
    return Signature(x, h, c, weights, bundle, by_place)


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def _needed(function: object) -> list[str]:
    """Return the names of the arguments that a call must give."""
    try:
        parameters = inspect.signature(function).parameters  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return []
    stars = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        name
        for name, parameter in parameters.items()
        if parameter.kind not in stars and parameter.default is parameter.empty
    ]


def _is_bundle(function: object, argument: str) -> bool:
    if _plain(argument) not in BUNDLES:
        return False
    return bool(list(_keys_of(function, argument))) or _plain(argument) not in ("w", "p")


def _keys_of(function: object, argument: str) -> Iterator[str]:
    """Yield the keys that the function's source looks up in this argument, each once."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))  # type: ignore[arg-type]
    except (OSError, TypeError, SyntaxError):
        return
    keys = dict.fromkeys(
        node.slice.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == argument
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    )
    yield from keys
