"""Measure how much of a recurrent network's state at step 0 is still felt at step T.

>>> import gradflow as gf
>>> settings = gf.DecaySettings(cell="lstm", gate=0.5, candidate_gain=0, steps=10, hidden=4)
>>> round(float(gf.run_decay(settings).curves[0].log10_norm[-1]), 10)  # 10 log10(0.5)
-3.0102999566

Names are loaded when they are first used, so `import gradflow` is fast and needs no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what a type checker and an editor see
    from gradflow import testing as testing
    from gradflow.cells import Stack as Stack
    from gradflow.cells import hold_ as hold_
    from gradflow.cells import register_cell as register_cell
    from gradflow.checkpoints import from_torch as from_torch
    from gradflow.engine import depth_norms as depth_norms
    from gradflow.engine import jacobian_norms as jacobian_norms
    from gradflow.engine import lyapunov_spectrum as lyapunov_spectrum
    from gradflow.engine import masked_accuracy as masked_accuracy
    from gradflow.engine import masked_loss as masked_loss
    from gradflow.engine import path_norms as path_norms
    from gradflow.experiments.benchmark import run_benchmark as run_benchmark
    from gradflow.experiments.decay import run_decay as run_decay
    from gradflow.experiments.depth import run_depth as run_depth
    from gradflow.experiments.inits import run_inits as run_inits
    from gradflow.experiments.inspect import inspect as inspect
    from gradflow.experiments.inspect.request import run_inspect as run_inspect
    from gradflow.experiments.params import run_params as run_params
    from gradflow.experiments.parity import parity as parity
    from gradflow.experiments.parity import run_parity as run_parity
    from gradflow.experiments.saturate import run_saturate as run_saturate
    from gradflow.experiments.spectrum import run_spectrum as run_spectrum
    from gradflow.experiments.speed import run_speed as run_speed
    from gradflow.experiments.step import run_step as run_step
    from gradflow.experiments.step import work_gru as work_gru
    from gradflow.experiments.step import work_lstm as work_lstm
    from gradflow.monitor.lightning import lightning_callback as lightning_callback
    from gradflow.monitor.reported import watch as watch
    from gradflow.monitor.transformers import trainer_callback as trainer_callback
    from gradflow.present import plot as plot
    from gradflow.settings import BenchmarkSettings as BenchmarkSettings
    from gradflow.settings import DecaySettings as DecaySettings
    from gradflow.settings import DepthSettings as DepthSettings
    from gradflow.settings import InitsSettings as InitsSettings
    from gradflow.settings import InspectSettings as InspectSettings
    from gradflow.settings import ParamsSettings as ParamsSettings
    from gradflow.settings import ParitySettings as ParitySettings
    from gradflow.settings import SaturateSettings as SaturateSettings
    from gradflow.settings import SpectrumSettings as SpectrumSettings
    from gradflow.settings import SpeedSettings as SpeedSettings
    from gradflow.settings import StepSettings as StepSettings
    from gradflow.settings import WatchSettings as WatchSettings
    from gradflow.store import load_result as load_result
    from gradflow.watching.recorded import run_watch as run_watch

__version__ = "0.1.0"

_ROOMS = (
    "cells", "checkpoints", "config", "engine", "errors", "experiments", "inits", "present",
    "records", "sweeps",
)  # fmt: skip
# Where each name of the library lives.
_NAMES = {
    "BenchmarkSettings": "gradflow.settings",
    "DecaySettings": "gradflow.settings",
    "DepthSettings": "gradflow.settings",
    "InitsSettings": "gradflow.settings",
    "InspectSettings": "gradflow.settings",
    "ParamsSettings": "gradflow.settings",
    "ParitySettings": "gradflow.settings",
    "SaturateSettings": "gradflow.settings",
    "SpectrumSettings": "gradflow.settings",
    "SpeedSettings": "gradflow.settings",
    "Stack": "gradflow.cells",
    "StepSettings": "gradflow.settings",
    "WatchSettings": "gradflow.settings",
    "depth_norms": "gradflow.engine",
    "from_torch": "gradflow.checkpoints",
    "hold_": "gradflow.cells",
    "inspect": "gradflow.experiments.inspect",
    "jacobian_norms": "gradflow.engine",
    "lightning_callback": "gradflow.monitor.lightning",
    "load_result": "gradflow.store",
    "lyapunov_spectrum": "gradflow.engine",
    "masked_accuracy": "gradflow.engine",
    "masked_loss": "gradflow.engine",
    "parity": "gradflow.experiments.parity",
    "path_norms": "gradflow.engine",
    "register_cell": "gradflow.cells",
    "run_benchmark": "gradflow.experiments.benchmark",
    "run_decay": "gradflow.experiments.decay",
    "run_depth": "gradflow.experiments.depth",
    "run_inits": "gradflow.experiments.inits",
    "run_inspect": "gradflow.experiments.inspect.request",
    "run_params": "gradflow.experiments.params",
    "run_parity": "gradflow.experiments.parity",
    "run_saturate": "gradflow.experiments.saturate",
    "run_spectrum": "gradflow.experiments.spectrum",
    "run_speed": "gradflow.experiments.speed",
    "run_step": "gradflow.experiments.step",
    "run_watch": "gradflow.watching.recorded",
    "trainer_callback": "gradflow.monitor.transformers",
    "watch": "gradflow.monitor.reported",
    "work_gru": "gradflow.experiments.step",
    "work_lstm": "gradflow.experiments.step",
}

_MODULES = {room: f"gradflow.{room}" for room in (*_ROOMS, "testing")} | {
    "plot": "gradflow.present.plot"
}

__all__ = [*_NAMES, *_MODULES]  # noqa: PLE0604 - the names are strings, of two tables


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'gradflow' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
