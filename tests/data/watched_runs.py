"""Samples of a watched training, built by hand: profiles that fall by a known factor a step."""

from __future__ import annotations

import math
from typing import Any

from gradflow.records.watch import FlowLayer, FlowSample, WatchRun


def flow_layer(factor: float = 0.9, steps: int = 60, **changes: Any) -> FlowLayer:
    """Return an LSTM layer whose gradient falls by `factor` with each step from the end."""
    slope = math.log10(factor)
    curve = tuple(slope * distance for distance in range(steps))
    horizon = -3.0 / slope if slope < 0 and -3.0 / slope <= steps - 1 else None
    fields: dict[str, Any] = {
        "name": "rnn",
        "kind": "lstm",
        "layer": 0,
        "direction": "forward",
        "hidden_size": 8,
        "steps": steps,
        "distance": tuple(range(steps)),
        "log10_dL_dh": curve,
        "log10_dL_dc": tuple(value + 0.5 for value in curve),
        "horizon": horizon,
        "horizon_reason": None if horizon is not None else f"not reached within {steps} steps",
        "half_life": math.log10(0.5) / slope if slope < 0 else None,
        "half_life_reason": None if slope < 0 else "the gradient does not fall",
        "gate_means": {"input": 0.5, "forget": factor, "output": 0.5},
        "saturated_fraction": {"input": 0.0, "forget": 0.0, "output": 0.0},
        "effective_forget_bias": None if factor >= 1 else math.log(factor / (1 - factor)),
        "arrives": (0, 0),
    }
    return FlowLayer(**{**fields, **changes})


def flow_sample(update: int = 0, *layers: FlowLayer, **changes: Any) -> FlowSample:
    """Return a sample of these layers; of one that is healthy where none is given."""
    fields: dict[str, Any] = {"log10_parameter_gradient_norm": 0.25, "seconds": 0.01}
    return FlowSample(update=update, layers=layers or (flow_layer(),), **{**fields, **changes})


def improving_run(samples: int = 12, steps: int = 60) -> WatchRun:
    """Return two layers; the first learns to remember over the training, the second does not."""
    taken = []
    for index in range(samples):
        learned = 0.5 + 0.45 * index / max(1, samples - 1)
        layers = (flow_layer(learned, steps), flow_layer(0.8, steps, layer=1))
        taken.append(flow_sample(100 * index, *layers))
    return WatchRun(samples=tuple(taken), config={"every": 100}, environment={"gradflow": "0"})
