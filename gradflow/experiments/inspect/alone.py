"""Layers without their model, as from a file of weights: run on zero and on random input."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gradflow.checkpoints.layers import Checkpoint, FoundLayer, FoundModule
from gradflow.engine.unrolled import UnrolledLayer
from gradflow.errors import ShapeError
from gradflow.experiments.inspect.axes import Axes, find_axes
from gradflow.experiments.inspect.batch import Batch, Layout
from gradflow.experiments.inspect.fused import fused_layer, output_gap
from gradflow.experiments.inspect.gradients import RanModule
from gradflow.experiments.inspect.twin_run import Watched, in_dtype

_DTYPES = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
}
_ROWS = 4


def plain_input(width: int, steps: int, seed: int) -> Tensor:
    """Return one sample of zeros and three of unit random numbers, (steps, 4, width)."""
    generator = torch.Generator("cpu").manual_seed(seed)
    shape = (steps, _ROWS, width)
    x = torch.randn(shape, generator=generator, dtype=torch.float64, device="cpu")
    x[:, 0] = 0.0
    return x


def data_of_layers(batch: Batch | None, layout: Layout | None) -> Batch | None:
    """Return data as bare layers take them: (time, batch, input) in float64, with lengths.

    Where the layout is not said, the number of lengths or of targets tells the batch axis; else
    time is first, as torch's layers have it by default.
    """
    if batch is None or not isinstance(batch.inputs, Tensor):
        return None
    x, lengths = batch.inputs.double(), batch.lengths
    x = x.unsqueeze(1) if x.dim() == 2 else x
    if x.dim() != 3:
        return None
    x = x.transpose(0, 1) if _axes_alone(x, batch, layout).batch == 0 else x
    fits = lengths is not None and len(lengths) == x.shape[1] and int(lengths.max()) <= len(x)
    return Batch(x, None, lengths if fits else None)


def _axes_alone(x: Tensor, batch: Batch, layout: Layout | None) -> Axes:
    return find_axes(x, batch, None, layout, usual=1)


def layout_note(
    model: nn.Module | None, batch: Batch | None, layout: Layout | None
) -> tuple[str, ...]:
    """Return that a file's data were read time first, where nothing tells their axes apart."""
    x = None if batch is None else batch.inputs
    if model is not None or batch is None or not isinstance(x, Tensor) or x.dim() != 3:
        return ()
    if _axes_alone(x, batch, layout).known:
        return ()
    return (
        f"Nothing tells which axis of the data is time; the first is taken: {x.shape[0]} steps of "
        f"{x.shape[1]} samples. --layout batch_first takes the second.",
    )


def run_alone(
    found: Checkpoint, *, steps: int, seed: int, data: Batch | None = None
) -> list[RanModule]:
    """Run each module by itself; return what it did, and how far its own dtype parts from it.

    Args:
        found: the layers.
        steps, seed: of the plain input.
        data: from `data_of_layers`, for the modules that read this width.
    """
    _require_width(found, data)
    ran = []
    for module in found.modules:
        for layers in _runnable(module):
            width = layers[0].input_size
            fits = data is not None and data.inputs.shape[-1] == width
            plain = Batch(plain_input(width, steps, seed))
            ran.append(_run(layers, data if fits and data is not None else plain))
    return ran


def _require_width(found: Checkpoint, data: Batch | None) -> None:
    """Raise where no module reads numbers as wide as the data's."""
    widths = dict.fromkeys(module.input_size for module in found.modules)
    if data is not None and data.inputs.shape[-1] not in widths:
        raise ShapeError(
            f"the data have {data.inputs.shape[-1]} numbers a step, and no layer reads so many; "
            f"they read {', '.join(map(str, widths))}. Give the whole model by --model, with what "
            "stands before its layers."
        )


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


def _run(layers: tuple[FoundLayer, ...], batch: Batch) -> RanModule:
    x = batch.inputs.to(layers[0].cell.device)
    both = len(layers) > 1 and layers[1].direction == "reverse"
    ways = 2 if both else 1
    twin = UnrolledLayer([layer.cell for layer in layers], directions=ways)
    nothing = (None,) * len(layers)
    output = twin.run(x, batch.lengths).detach()
    watched = Watched(layers[0].name, layers, list(twin.calls), list(twin.outputs))
    fused = fused_layer(layers)
    if fused is None or batch.lengths is not None:
        return RanModule(watched, nothing, None, reads_last=False)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ways that torch does not take
        watched.note(output_gap(output, fused(x)[0]), 0.0)
        narrow = _DTYPES.get(layers[0].dtype)
        if narrow is None:
            return RanModule(watched, nothing, None, reads_last=False)
        right = twin.run(x.to(narrow).double())
        gap = output_gap(right, fused.to(narrow)(x.to(narrow))[0])
        slow = UnrolledLayer([in_dtype(layer.cell, narrow) for layer in layers], directions=ways)
        rounding = output_gap(right, slow.run(x.to(narrow)))
    return RanModule(watched, nothing, gap, reads_last=False, rounding=rounding)
