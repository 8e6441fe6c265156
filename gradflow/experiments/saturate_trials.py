"""The trials of `saturate` for one subject: places, magnitudes and signs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from gradflow.config import SaturateSettings
from gradflow.engine.saturation.measure import largest, root_of_largest, rounded
from gradflow.engine.saturation.places import AS_GIVEN, Place, gate_places, open_places
from gradflow.engine.saturation.subjects import Subject

BEYOND = "beyond"
SIGNS = (("+", 1.0), ("-", -1.0))


@dataclass(frozen=True)
class Trial:
    """A number in a place; `problem` says why it cannot be put there."""

    place: Place
    magnitude: str | None
    sign: str | None
    value: float | None
    problem: str | None = None


def trials(subject: Subject, settings: SaturateSettings) -> Iterator[Trial]:
    """Yield every trial of a subject: as it is (a user's), its gates, the input, the state."""
    if subject.implementation == "user":
        yield Trial(Place(AS_GIVEN, "weights"), None, None, None)
    for places, is_open in ((gate_places(subject), False), (open_places(subject), True)):
        for magnitude in settings.magnitude:
            size, problem = _size(magnitude, subject.cell.dtype, is_open=is_open)
            yield from _both_signs(places, magnitude, size, problem)
    if settings.beyond:
        places = open_places(subject, beyond=True)
        yield from _both_signs(places, BEYOND, largest(subject.cell.dtype), None)


def _both_signs(
    places: list[Place], magnitude: str, size: float | None, problem: str | None
) -> Iterator[Trial]:
    for place in places:
        if place.path == "bias" and not place.biases:
            size, problem = None, f"the {place.name} has no bias to put a number into"
        for sign, factor in SIGNS:
            value = None if size is None else factor * size
            yield Trial(place, magnitude, sign, value, problem)


def _size(magnitude: str, dtype: torch.dtype, *, is_open: bool) -> tuple[float | None, str | None]:
    """Return the dtype's number for a magnitude, or why there is none."""
    if magnitude == "max":
        return (root_of_largest if is_open else largest)(dtype), None
    size = rounded(float(magnitude), dtype)
    if size is None:
        name = str(dtype).removeprefix("torch.")
        return None, f"{name} cannot hold {magnitude}: its largest number is {largest(dtype):g}"
    return size, None
