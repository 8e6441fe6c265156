"""A work that computes with torch, in a module that a worker's process can import."""

from __future__ import annotations

import os
import random
import resource
from collections.abc import Mapping
from typing import Any

import torch


def train(settings: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Train a small GRU for a few steps; the row says how, and where."""
    torch.manual_seed(settings["seed"])
    layer = torch.nn.GRU(3, settings["hidden"])
    optimiser = torch.optim.Adam(layer.parameters(), lr=settings["learning_rate"])
    x = torch.randn(12, 5, 3)
    losses = []
    for _ in range(4):
        optimiser.zero_grad()
        loss = layer(x)[0].square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    chance = random.Random(key).random()
    return {
        "losses": losses,
        "chance": chance,
        "threads": torch.get_num_threads(),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "process": os.getpid(),
    }
