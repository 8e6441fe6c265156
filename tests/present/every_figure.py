"""A small real result of every command that draws, and its figures."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import nn

import gradflow as gf
from gradflow.present.notebook import PRESENTERS
from tests.present import benchmark_results

STYLES = ("screen", "paper")
EXAMPLES = Path(__file__).parents[2] / "examples"
# Each asks for what its figure has the most of: gates, paths, a sweep, kinds of tiles, layers.
_QUESTIONS: dict[str, dict[str, Any]] = {
    "decay": {
        "gate": (0.1, 0.5),
        "candidate_gain": (0.0, 1.0, 2.0),
        "steps": 20,
        "hidden": 6,
        "paths": True,
    },
    "depth": {"layers": 2, "steps": 8, "hidden": 4, "input_size": 3, "batch": 3, "shortest": 4},
    "saturate": {"cell": "lstm", "dtype": ("float16", "float32"), "magnitude": ("1e8", "max")},
    "spectrum": {
        "cell": "rnn",
        "gain": 3.0,
        "hidden": 24,
        "steps": 60,
        "warmup": 20,
        "networks": 2,
    },
    "speed": {"hidden": (4, 8), "steps": 6, "threads": 1, "rounds": 1},
    "params": {"output_size": 3, "hidden": 8},
    "parity": {},
    "inits": {"steps": 40, "hidden": 6, "seeds": 2, "input_size": 3},
    "step": {"forget_gate": (0.9, 0.5), "figure": True},
}


@cache
def result_of(command: str) -> Any:
    """Run the command's question once, small; a benchmark, which trains, is made up."""
    if command in _OTHERS:
        return _OTHERS[command]()
    name = command.title()
    settings = getattr(gf, f"{name}Settings")(**_QUESTIONS[command])
    return getattr(gf, f"run_{command}")(settings)


@cache
def figures_of(command: str, style: str) -> dict[str, Figure]:
    """The figures of the command's result, made once."""
    return dict(PRESENTERS[command](result_of(command), style=style).figures)


def _inspection() -> Any:
    torch.manual_seed(0)
    model = nn.LSTM(3, 4, num_layers=2)
    batch = (torch.randn(12, 5, 3), torch.randn(12, 5, 4))
    return gf.inspect(model, batch, loss="mse")


_OTHERS = {
    "inspect": _inspection,
    "watch": lambda: gf.load_result(EXAMPLES / "watched_training.jsonl"),
    "benchmark": benchmark_results.result,
}
COMMANDS = (*_QUESTIONS, *_OTHERS)
