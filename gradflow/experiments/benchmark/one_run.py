"""One combination of cell, initialization, width, delay, learning rate and seed: one row.

`train_one` is what a worker runs. It knows nothing but its settings, and everything random comes
from them, so a row is the same wherever and in whatever order it is made, but for times and memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gradflow.experiments.benchmark.costs import (
    multiply_adds,
    process_peak_bytes,
    start_process_peak,
    time_of_sequences,
    training_peak_bytes,
)
from gradflow.experiments.benchmark.datasets import DataSets, batches, draw_sets
from gradflow.experiments.benchmark.gradient_profile import gradient_profile
from gradflow.experiments.benchmark.made_task import make_task, set_sizes
from gradflow.experiments.benchmark.networks import Network, make_network, seeded
from gradflow.experiments.benchmark.seeds import derived_seed
from gradflow.experiments.benchmark.tasks import SequenceTask
from gradflow.experiments.benchmark.training import (
    Score,
    Training,
    TrainingRule,
    Validation,
    evaluate,
    train,
)
from gradflow.records.base import Json, finite_or_none

_PROBED = 64  # sequences of the validation set whose loss is traced to the states
_LEVELS = (0.05, 0.5, 0.95)


def train_one(settings: Mapping[str, Any], key: str) -> Json:
    """Train one network and return its row, strict JSON.

    Args:
        settings: of `gradflow.experiments.benchmark.grid.run_settings`.
        key: the task's; seeds what a user's own cell draws while it trains (dropout).
    """
    task = make_task(settings, settings["delay"])
    sets = draw_sets(
        task,
        set_sizes(settings),
        seed=derived_seed(settings["seed"], "data", settings["task"], settings["delay"]),
        overlap=settings["overlap"] != "never",
    )
    make = _maker(settings, task)
    network = make()
    start_process_peak()
    order = derived_seed(settings["seed"], "order", settings["draw"])
    endless = batches(sets.train, settings["batch"], order)
    with seeded(int(key[:15], 16)):
        training = train(network, task, endless, sets.validation, _rule(settings))
    measured = {"process_peak_bytes": process_peak_bytes(), **_costs(settings, make, task, sets)}
    return {
        **_outcome(network, task, training, sets),
        "data": {"fingerprint": sets.fingerprint, "shared": sets.shared},
        "profiles": _profiles(make, task, training, sets),
        "costs": {
            "parameters": network.parameter_count,
            "multiply_adds": multiply_adds(settings["cell"], network, task),
            "training_seconds": training.seconds,
            "step_calls": training.step_calls,
            "updates": training.updates,
            **measured,
        },
    }


def _costs(
    settings: Mapping[str, Any], make: Callable[[], Network], task: SequenceTask, sets: DataSets
) -> Json:
    """Return what does not depend on how training went: seconds of 512 sequences, and memory."""
    rule, size = _rule(settings), settings["batch"]
    return {
        "seconds_of_512": time_of_sequences(make, task, sets.train, size, rule),
        "peak_bytes": training_peak_bytes(make, task, sets.train, size, rule),
    }


def _maker(settings: Mapping[str, Any], task: SequenceTask) -> Callable[[], Network]:
    return partial(
        make_network,
        task,
        cell=settings["cell"],
        hidden=settings["hidden"],
        embedding=settings["embedding"],
        init=settings["init"],
        seed=derived_seed(settings["seed"], "draw", settings["draw"]),
    )


def _rule(settings: Mapping[str, Any]) -> TrainingRule:
    names = ("optimizer", "learning_rate", "clip", "updates", "evaluate_every", "patience")
    return TrainingRule(**{name: settings[name] for name in names})


def _outcome(network: Network, task: SequenceTask, training: Training, sets: DataSets) -> Json:
    """Return how training went, and the one look at the test set with the best weights."""
    test = None
    best = training.validations[training.best] if training.validations else None
    if best is not None and not training.diverged:
        network.load_state_dict(training.weights[training.best])
        test = _score(evaluate(network, task, sets.test()))
    return {
        "stopped": training.stopped,
        "reason": training.reason,
        "curve": [_point(entry) for entry in training.validations],
        "best_update": None if best is None else best.update,
        "gradient_norms": _spread(training.gradient_norms),
        "test": test,
    }


def _point(entry: Validation) -> Json:
    return {
        "update": entry.update,
        "train_loss": finite_or_none(entry.train_loss),
        **_score(entry.score),
    }


def _score(score: Score) -> Json:
    return {
        "loss": finite_or_none(score.loss),
        "recall_loss": finite_or_none(score.recall_loss),
        "accuracy": score.accuracy,
    }


def _spread(norms: list[float]) -> Json | None:
    """Return quantiles and the largest of the gradient norms before clipping; None without any."""
    if not norms:
        return None
    low, middle, high = (float(value) for value in np.quantile(norms, _LEVELS))
    return {"q05": low, "median": middle, "q95": high, "largest": max(norms)}


def _profiles(
    make: Callable[[], Network], task: SequenceTask, training: Training, sets: DataSets
) -> list[Json]:
    """Return the gradient profile at the start, in the middle and at the end of training.

    The middle is, of the validations whose weights were kept, the nearest to half of the updates.
    """
    if not training.validations:
        return []
    updates = {index: training.validations[index].update for index in training.weights}
    last = max(updates)
    middle = min(updates, key=lambda index: abs(updates[index] - updates[last] / 2))
    network = make().to(torch.float64)
    probe = sets.validation.at(torch.arange(min(_PROBED, len(sets.validation))))
    profiles = []
    for moment, index in (("start", 0), ("middle", middle), ("end", last)):
        found = gradient_profile(network, task, probe, training.weights[index])
        profiles.append(
            {
                "moment": moment,
                "update": updates[index],
                "loss": finite_or_none(found.loss),
                "loss_error": finite_or_none(found.loss_error),
                "log10_norms": _by_part(found.log10_norms),
                "recall_norms": _by_part(found.recall_norms),
            }
        )
    return profiles


def _by_part(norms: Mapping[str, Tensor]) -> Json:
    """Return log10 norms to six decimals; None is an exact zero, as in every log10 norm here."""
    return {
        part: [round(value, 6) if math.isfinite(value) else None for value in values.tolist()]
        for part, values in norms.items()
    }
