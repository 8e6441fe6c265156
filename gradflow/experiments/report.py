"""The studies that a report runs first: each a question of another command, one after another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradflow.config import COMMAND_SETTINGS, find_config, resolve_settings
from gradflow.errors import GradflowError, Interrupted, UnknownNameError, nearest_name
from gradflow.experiments.benchmark import run_benchmark
from gradflow.experiments.decay import run_decay
from gradflow.experiments.depth import run_depth
from gradflow.experiments.inits import run_inits
from gradflow.experiments.inspect.request import run_inspect
from gradflow.experiments.params import run_params
from gradflow.experiments.parity import run_parity
from gradflow.experiments.saturate import run_saturate
from gradflow.experiments.spectrum import run_spectrum
from gradflow.experiments.speed import run_speed
from gradflow.experiments.step import run_step
from gradflow.records import Result
from gradflow.settings import Settings

Progress = Callable[[str, int, int], None]
RUNNERS: dict[str, Callable[..., Result]] = {
    "decay": run_decay,
    "depth": run_depth,
    "inits": run_inits,
    "inspect": run_inspect,
    "params": run_params,
    "parity": run_parity,
    "saturate": run_saturate,
    "spectrum": run_spectrum,
    "speed": run_speed,
    "step": run_step,
}
"""Command to the function that answers it; a new command adds its own."""
SWEEPS: dict[str, Callable[..., Result]] = {"benchmark": run_benchmark}
"""The same of commands that keep their runs in a folder while they go on."""
_PARTS = 1000  # of a study, in which the overall progress counts
_WRITTEN_BY = re.compile(r"# gradflow (\w+),")


@dataclass(frozen=True)
class Study:
    """A question with its settings; `name` is its own in this report."""

    name: str
    command: str
    settings: Settings


@dataclass(frozen=True)
class Outcome:
    """What became of a study: a result, or the reason why there is none.

    `interrupted` says how far it came where the user stopped it; no other study is run then.
    """

    study: Study
    result: Result | None = None
    reason: str = ""
    interrupted: str | None = None


def read_studies(names: Sequence[str], *, seed: int | None = None) -> tuple[Study, ...]:
    """Read the settings of studies, each a preset or a TOML file; nothing is run yet.

    The command is the beginning of the file's name ("benchmark-quick" is a `benchmark`), or what
    the first line of a stored `config.toml` says.

    Args:
        names: presets by their bare names, or paths.
        seed: of all studies, in place of each one's own.

    Raises:
        UnknownNameError: there is no such file, or no such command.
        SettingError, GateValueError: a setting that cannot be.
    """
    studies: dict[str, Study] = {}
    for name in names:
        path = _find(name)
        command = _command_of(path)
        flags = {} if seed is None else {"seed": seed}
        settings = resolve_settings(COMMAND_SETTINGS[command], flags=flags, config=path)
        own = _free_name(path.stem if path.stem != "config" else path.parent.name, studies)
        studies[own] = Study(own, command, settings)
    return tuple(studies.values())


def run_studies(
    studies: Sequence[Study],
    *,
    prepare: Callable[[Study], Path],
    progress: Progress | None = None,
) -> Iterator[Outcome]:
    """Run studies one after another and yield what became of each, so that it can be kept.

    A study whose request turns out wrong is named with the reason, and the next one is run.

    Args:
        studies: see `read_studies`.
        prepare: called with each study before it is run; returns the folder that is its own.
        progress: called as `progress(what, parts done, parts in all)`, over all studies.
    """
    for index, study in enumerate(studies):
        inner = None if progress is None else _share(progress, study, index, len(studies))
        try:
            result = _run(study, prepare(study), inner)
        except (Interrupted, KeyboardInterrupt) as stop:
            yield _stopped(study, stop)
            return
        except GradflowError as problem:
            yield Outcome(study, reason=str(problem))
        else:
            yield Outcome(study, result, interrupted=result.environment.get("interrupted"))
            if "interrupted" in result.environment:
                return


def _run(study: Study, folder: Path, progress: Progress | None) -> Result:
    if study.command in SWEEPS:
        return SWEEPS[study.command](study.settings, folder=folder, progress=progress)
    return RUNNERS[study.command](study.settings, progress=progress)


def _stopped(study: Study, stop: BaseException) -> Outcome:
    partial = getattr(stop, "partial", None)
    how_far = str(stop) or f"{study.name} was stopped."
    kept = partial if isinstance(partial, Result) else None
    return Outcome(study, kept, reason="stopped before it was measured", interrupted=how_far)


def _share(progress: Progress, study: Study, index: int, count: int) -> Progress:
    """Return the progress of one study as a part of the whole."""

    def report(what: str, done: int, total: int) -> None:
        part = round(_PARTS * min(1.0, done / total)) if total else 0
        label = f"{study.name} ({index + 1} of {count}): {what}"
        progress(label, _PARTS * index + part, _PARTS * count)

    report("starting", 0, 1)
    return report


def _find(name: str) -> Path:
    try:
        return find_config(name)
    except UnknownNameError as problem:
        _, _, rest = str(problem).partition("; ")
        raise UnknownNameError(
            f"a study is a preset or a TOML file whose name begins with its command; {rest}"
        ) from None


def _command_of(path: Path) -> str:
    command = path.stem.partition("-")[0]
    if path.stem == "config":
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError):
            text = ""
        written = _WRITTEN_BY.match(text)
        command = written[1] if written else command
    known = {*RUNNERS, *SWEEPS}
    if command not in known:
        raise UnknownNameError(
            f"a study's file begins with the name of its command; {path.name!r} does not. "
            + nearest_name(command, known)
        )
    return command


def _free_name(name: str, taken: dict[str, Any]) -> str:
    """Return the name, numbered where it is taken."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free
