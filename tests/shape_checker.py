"""The type checker that jaxtyping runs under in tests: beartype, less what beartype cannot read.

beartype sees one function at a time, so `typing.Self` means nothing to it; that annotation is
dropped and all others (the shapes above all) are still checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from beartype import beartype


def check_shapes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with every annotation but `Self` checked at each call."""
    annotations = getattr(function, "__annotations__", {})
    for name, annotation in list(annotations.items()):
        if annotation is Self or (isinstance(annotation, str) and "Self" in annotation):
            del annotations[name]
    return beartype(function)
