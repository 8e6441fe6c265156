"""From settings, of the whole benchmark or of one run, to the task that they name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradflow.errors import SettingError
from gradflow.experiments.benchmark.adding_task import AddingTask
from gradflow.experiments.benchmark.copy_task import CopyTask
from gradflow.experiments.benchmark.signal_task import SignalTask
from gradflow.experiments.benchmark.tasks import SequenceTask

OWN_SETTINGS = {"copy": ("symbols", "alphabet"), "signal": ("distractors",), "adding": ()}
"""What each task takes beside the delay."""

SIZES = ("train_size", "validation_size", "test_size")


def make_task(settings: Mapping[str, Any], delay: int) -> SequenceTask:
    """Return the task at a delay.

    Raises:
        SettingError: it has no form at this delay.
    """
    if settings["task"] == "copy":
        symbols, alphabet = settings["symbols"], settings["alphabet"]
        return CopyTask(delay=delay, symbols=symbols, alphabet=alphabet)
    if settings["task"] == "signal":
        return SignalTask(delay=delay, distractors=settings["distractors"])
    if delay < 2:
        raise SettingError(
            "--delay is the number of steps that the two marked numbers of the adding task are "
            f"among, at least 2; got {delay}."
        )
    return AddingTask(delay=delay)


def set_sizes(settings: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the sizes of the training, validation and test sets."""
    return tuple(int(settings[name]) for name in SIZES)
