"""A sample as named numbers, for plots of a training in somebody else's program."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gradflow.records.watch import FlowLayer, FlowSample


def scalars_of(sample: FlowSample) -> dict[str, float]:
    """Return the numbers of a sample by name; what is absent or not finite is left out.

    A layer is called as torch calls its weights: `gradflow/encoder.rnn.l0_reverse/horizon`.

    >>> layer = FlowLayer("rnn", "gru", 1, "reverse", 8, 2, (0, 1), (0.0, -1.0), horizon=3.0)
    >>> for name, value in scalars_of(FlowSample(0, (layer,))).items():
    ...     print(name, value)
    gradflow/rnn.l1_reverse/horizon 3.0
    gradflow/rnn.l1_reverse/log10_dL_dh_last 0.0
    gradflow/rnn.l1_reverse/log10_dL_dh_first -1.0
    """
    named: dict[str, float | None] = {
        "gradflow/log10_parameter_gradient_norm": sample.log10_parameter_gradient_norm,
        "gradflow/loss_scale": sample.loss_scale,
    }
    for layer in sample.layers:
        place = f"gradflow/{place_name(layer)}"
        named |= {f"{place}/{name}": value for name, value in _of_layer(layer)}
    return {
        name: float(value)
        for name, value in named.items()
        if value is not None and math.isfinite(value)
    }


def place_name(layer: FlowLayer) -> str:
    """Return a layer's name as torch names its weights: "encoder.rnn.l0_reverse"."""
    way = "" if layer.direction == "forward" else f"_{layer.direction}"
    call = f".call{layer.call + 1}" if layer.call else ""
    return f"{layer.name}.l{layer.layer}{way}{call}".removeprefix(".")


def _of_layer(layer: FlowLayer) -> Iterator[tuple[str, float | None]]:
    yield "horizon", layer.horizon
    yield "half_life", layer.half_life
    if layer.log10_dL_dh:
        yield "log10_dL_dh_last", layer.log10_dL_dh[0]
        yield "log10_dL_dh_first", layer.log10_dL_dh[-1]
    if layer.log10_dL_dc:
        yield "log10_dL_dc_last", layer.log10_dL_dc[0]
        yield "log10_dL_dc_first", layer.log10_dL_dc[-1]
    yield "cut_at", layer.cut_at
    yield "effective_forget_bias", layer.effective_forget_bias
    for gate, value in layer.gate_means.items():
        yield f"gate_mean/{gate}", value
    for gate, value in layer.saturated_fraction.items():
        yield f"saturated_fraction/{gate}", value
