"""Works of sweeps that are timed, in a module that a worker can import."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import torch

Settings = Mapping[str, Any]


def rest(settings: Settings, key: str) -> dict[str, Any]:
    """Take the time that `seconds` says, and no processor."""
    time.sleep(settings["seconds"])
    return {"slept": settings["seconds"]}


def train(settings: Settings, key: str) -> dict[str, Any]:
    """Train an LSTM for some seconds; say when it began, and how long the processor took."""
    begun, busy = time.time(), time.process_time()
    torch.manual_seed(settings["seed"])
    layer, head = torch.nn.LSTM(16, 64), torch.nn.Linear(64, 8)
    parameters = [*layer.parameters(), *head.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=1e-3)
    x, y = torch.randn(60, 64, 16), torch.randint(8, (60 * 64,))
    for _ in range(settings["updates"]):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(head(layer(x)[0]).flatten(0, 1), y)
        loss.backward()
        optimiser.step()
    return {"loss": loss.item(), "begun": begun, "busy": time.process_time() - busy}
