"""From two linked sides to a bench: whose weights, which inputs, which first state."""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.checkpoints.parity_sides import DEFAULT_SIZES, Widths
from gradflow.checkpoints.sides import Side, Weights
from gradflow.checkpoints.sides.file_side import (
    RecordingSide,
    data_inputs,
    first_state,
    holds_state,
    torch_weights,
)
from gradflow.checkpoints.sides.function_side import FunctionSide
from gradflow.checkpoints.sides.tensor_files import read_tensors
from gradflow.errors import CellLoadError, SettingError, ShapeError
from gradflow.experiments.parity.bench import Bench
from gradflow.experiments.parity.mapping import LayoutLink, Link, Pair
from gradflow.experiments.parity.problem import draw_like, draw_problem, draw_weights
from gradflow.settings.parity import ParitySettings


def asked_widths(settings: ParitySettings) -> Widths:
    """Return the widths asked for; those of a file of weights or data where they are not."""
    found: dict[str, int] = {}
    if settings.data is not None:
        found["input_size"] = data_inputs(read_tensors(settings.data), settings.data).shape[-1]
    if settings.weights not in ("auto", "own", "random"):
        weights = _weights_of_file(settings.weights)
        found["input_size"] = weights["weight_ih"].shape[1]
        found["hidden_size"] = weights["weight_hh"].shape[1]
    given = {"input_size": settings.input_size, "hidden_size": settings.hidden}
    found |= {key: value for key, value in given.items() if value is not None}
    return Widths(
        found.get("input_size", DEFAULT_SIZES[0]), found.get("hidden_size", DEFAULT_SIZES[1])
    )


def make_bench(pair: Pair, settings: ParitySettings) -> Bench:
    """Return the sides with their weights, the inputs and the first state.

    Raises:
        ShapeError, CellLoadError: a file of weights or data that does not fit.
    """
    common_a, common_b = _common_weights(pair, settings)
    recording = next((s for s in (pair.a, pair.b) if isinstance(s, RecordingSide)), None)
    widths = (pair.a.input_size, pair.a.hidden_size)
    parts = pair.b.parts if pair.a is recording else pair.a.parts
    xs: Tensor | None = None
    state: tuple[Tensor, ...] | None = None
    if recording is not None:
        xs, state = recording.xs, recording.first_state(parts)
    elif settings.data is not None:
        xs, state = _given_data(settings.data, parts, widths)
    problem = draw_problem(parts, widths, settings, xs=xs, state=state)
    shared = common_a is common_b
    return Bench(pair, common_a, common_b, problem, settings.tolerance, shared)


def _given_data(
    path: str, parts: tuple[str, ...], widths: tuple[int, int]
) -> tuple[Tensor, tuple[Tensor, ...] | None]:
    tensors = read_tensors(path)
    xs = data_inputs(tensors, path)
    if xs.shape[-1] != widths[0]:
        raise ShapeError(
            f"--data {path}: x must be {widths[0]} wide, as the sides are; got {xs.shape[-1]}."
        )
    if not holds_state(tensors):
        return xs, None
    return xs, first_state(tensors, parts, (xs.shape[1], widths[1]))


def _common_weights(pair: Pair, settings: ParitySettings) -> tuple[Weights, Weights]:
    """Return the weights of both sides in common coordinates."""
    if _keeps_own_weights(pair, settings):
        return _own(pair.a, pair.link_a), _own(pair.b, pair.link_b)
    files = [
        (side, link)
        for side, link in ((pair.a, pair.link_a), (pair.b, pair.link_b))
        if side.is_file
    ]
    if settings.weights == "auto" and files:
        common = _own(*files[0])
    elif settings.weights not in ("auto", "random"):
        common = _weights_of_file(settings.weights)
    elif pair.kind is None:
        common = draw_like(pair.a.weights, settings)
    else:
        common = draw_weights(pair.kind, (pair.a.input_size, pair.a.hidden_size), settings)
    for side, layout in zip((pair.a, pair.b), pair.layouts, strict=True):
        if layout is not None and not layout.biases and pair.kind is not None:
            common = {n: torch.zeros_like(t) if "bias" in n else t for n, t in common.items()}
            side.note(f"{side.label} has no bias, so all biases are 0 here.")
    return common, common


def _keeps_own_weights(pair: Pair, settings: ParitySettings) -> bool:
    """Return whether each side keeps its own weights.

    With "auto" two files do, and a network beside a recording; one file's weights go into both.
    """
    sides = (pair.a, pair.b)
    recorded = any(isinstance(side, RecordingSide) for side in sides)
    own = settings.weights == "own"
    if settings.weights == "auto":
        own = recorded or all(side.is_file for side in sides)
    bare = [side.name for side in sides if isinstance(side, FunctionSide)]
    if own and bare:
        raise SettingError(
            f"{bare[0]} is a step function and has no weights of its own to keep. Give them by "
            "--weights FILE, or compare on random ones."
        )
    return own


def _own(side: Side, link: Link) -> Weights:
    if isinstance(link, LayoutLink):
        return link.layout.read(side.weights)
    return side.weights


def _weights_of_file(path: str) -> dict[str, Tensor]:
    tensors = read_tensors(path)
    found = torch_weights(tensors)
    if found is None:
        raise CellLoadError(
            f"--weights {path} must hold weight_ih and weight_hh (with or without bias_ih and "
            f"bias_hh), as torch calls them; it has {', '.join(list(tensors)[:6])}."
        )
    rows = found["weight_ih"].shape[0]
    for name in ("bias_ih", "bias_hh"):
        found.setdefault(name, torch.zeros(rows, dtype=torch.float64))
    return found
