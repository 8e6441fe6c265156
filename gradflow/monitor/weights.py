"""What a model's weights show before it trains: forget biases, gate orders, orthogonality."""

from __future__ import annotations

from dataclasses import asdict, replace

import torch
from torch import nn

from gradflow.checkpoints.find_modules import find_modules
from gradflow.checkpoints.layers.of_modules import layers_of_model
from gradflow.experiments.inspect.weight_findings import weight_findings
from gradflow.records.watch import FlowFinding
from gradflow.watching.faults import warn

_UNREAD = "GF302"  # what a watch cannot look at is told by the watch itself


def findings_of_weights(model: nn.Module) -> tuple[FlowFinding, ...]:
    """Return what the weights of a model's recurrent layers show, by themselves.

    Nothing of the model is changed, and no random number is drawn from the training's generator. A
    fault of this look is a warning and no findings.

    >>> model = nn.LSTM(2, 4)
    >>> for name, bias in model.named_parameters():
    ...     _ = nn.init.ones_(bias) if name.startswith("bias") else None
    >>> [finding.code for finding in findings_of_weights(model)]
    ['GF201']
    """
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            found = weight_findings(layers_of_model(model, find_modules(model)))
    except Exception as problem:
        reason = f"{type(problem).__name__}: {problem}"
        warn(f"gradflow.watch could not look at the weights, and goes on without: {reason}")
        return ()
    told = [FlowFinding(**asdict(each)) for each in found if each.code != _UNREAD]
    return tuple(replace(each, layer=_named(each.layer)) for each in told)


def _named(layer: str | None) -> str | None:
    """Return a layer's title as the samples have it, where the model itself is the layer."""
    return layer if layer is None else layer.removeprefix(", ")
