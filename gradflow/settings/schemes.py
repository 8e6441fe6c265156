"""The names of initializations, as `--init` takes them: `xavier`, `chrono:100`, `he+forget-bias:1`.

A name may carry a number after a colon; several, joined by +, are applied one after the other.
"""

from __future__ import annotations

import math

from gradflow.errors import nearest_name

SCHEMES: dict[str, float | None] = {
    "torch-default": None,
    "xavier": None,
    "he": None,
    "orthogonal-per-gate": 1.0,
    "orthogonal-stacked": 1.0,
    "scaled-identity": 0.95,
    "zero-bias": None,
    "forget-bias": 1.0,
    "chrono": 100.0,
    "as-commonly-copied": 1.0,
}
"""Name to the number that it has when none is written; None where it takes none."""

ALWAYS_WRITTEN = ("scaled-identity", "forget-bias", "chrono")
"""Names that are never shown without their number."""

Part = tuple[str, float | None]


def read_scheme(text: str) -> tuple[Part, ...]:
    """Read a scheme into its parts, each a name and its number (None where it takes none).

    >>> read_scheme("he+forget-bias:2"), read_scheme("chrono")
    ((('he', None), ('forget-bias', 2.0)), (('chrono', 100.0),))

    Raises:
        ValueError: a name that does not exist, or a number that is none or not wanted.
    """
    return tuple(_read_part(part.strip(), text) for part in str(text).split("+"))


def scheme_name(parts: tuple[Part, ...]) -> str:
    """Return a scheme under its one name.

    >>> scheme_name(read_scheme("forget-bias:1.0 + chrono"))
    'forget-bias:1+chrono:100'
    """
    return "+".join(_part_name(name, number) for name, number in parts)


def _read_part(part: str, text: str) -> Part:
    name, colon, written = part.partition(":")
    if name not in SCHEMES:
        raise ValueError(
            f"must name an initialization, such as xavier or forget-bias:1; got {text!r}. "
            f"{nearest_name(name, SCHEMES)}"
        )
    usual = SCHEMES[name]
    if not colon:
        return name, usual
    if usual is None:
        raise ValueError(f"knows no number for {name!r}; got {part!r}. Write {name!r} alone.")
    try:
        number = float(written)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or (name == "chrono" and number <= 2.0):
        rule = "more than 2" if name == "chrono" else "finite"
        raise ValueError(
            f"takes a number after {name!r}, {rule}; got {part!r}. Write {name}:{usual:g}."
        )
    return name, number


def _part_name(name: str, number: float | None) -> str:
    if number is None or (number == SCHEMES[name] and name not in ALWAYS_WRITTEN):
        return name
    return f"{name}:{number:.12g}".replace("e+", "e")  # a plus joins two schemes
