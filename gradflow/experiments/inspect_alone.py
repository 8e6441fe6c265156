"""Layers without their model, as from a file of weights: run on zero and on random input."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

from gradflow.checkpoints.layers import Checkpoint, FoundLayer, FoundModule
from gradflow.engine.unrolled import UnrolledLayer
from gradflow.experiments.inspect_fused import fused_layer, output_gap
from gradflow.experiments.inspect_run import Watched

_DTYPES = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
}
_ROWS = 4


def plain_input(width: int, steps: int, seed: int) -> Tensor:
    """Return one sample of zeros and three of unit random numbers, (steps, 4, width)."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(steps, _ROWS, width, generator=generator, dtype=torch.float64)
    x[:, 0] = 0.0
    return x


def run_alone(
    found: Checkpoint, *, steps: int, seed: int, x: Tensor | None = None
) -> list[tuple[Watched, float | None]]:
    """Run each module by itself; return what it did, and how far its own dtype parts from it.

    Args:
        found: the layers.
        steps, seed: of the plain input.
        x: (time, batch, input) for the modules that read this width, in float64.
    """
    ran = []
    for module in found.modules:
        for layers in _runnable(module):
            width = layers[0].input_size
            fits = x is not None and x.shape[-1] == width
            fed = x if fits and x is not None else plain_input(width, steps, seed)
            ran.append(_run(layers, fed))
    return ran


def _runnable(module: FoundModule) -> list[tuple[FoundLayer, ...]]:
    """Return the layers that can be run on each other; each by itself where they do not fit."""
    layers = module.layers
    first = layers[0]
    if len(layers) == first.layers * first.directions and _fit(layers):
        return [layers]
    return [(layer,) for layer in layers]


def _fit(layers: Sequence[FoundLayer]) -> bool:
    directions = layers[0].directions
    for index in range(directions, len(layers)):
        below = layers[index // directions * directions - directions :][:directions]
        if layers[index].input_size != sum(layer.shown_size for layer in below):
            return False
    return True


def _run(layers: tuple[FoundLayer, ...], x: Tensor) -> tuple[Watched, float | None]:
    both = len(layers) > 1 and layers[1].direction == "reverse"
    twin = UnrolledLayer([layer.cell for layer in layers], directions=2 if both else 1)
    output = twin.run(x).detach()
    watched = Watched(layers[0].name, layers, twin.calls, twin.outputs)
    fused = fused_layer(layers)
    if fused is None:
        return watched, None
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ways that torch does not take
        gap = output_gap(output, fused(x)[0])
        watched.fused_gap = gap if math.isfinite(gap) else None
        narrow = _DTYPES.get(layers[0].dtype)
        if narrow is None:
            return watched, None
        own = fused.to(narrow)(x.to(narrow))[0]
        return watched, output_gap(twin.run(x.to(narrow).double()).detach(), own)
