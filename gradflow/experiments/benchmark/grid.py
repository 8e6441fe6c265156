"""The grid of a benchmark: which models there are, and the settings of every single run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradflow.checkpoints.user_files import is_place
from gradflow.errors import CellLoadError, GateValueError, SettingError
from gradflow.experiments.benchmark.datasets import require_enough
from gradflow.experiments.benchmark.made_task import OWN_SETTINGS, make_task, set_sizes
from gradflow.experiments.benchmark.networks import AS_MADE, make_network
from gradflow.experiments.benchmark.tasks import SequenceTask
from gradflow.experiments.benchmark.widths import Counting, match_target, nearest_width
from gradflow.records.benchmark import PARAMETERS, WIDTH, BenchmarkModel, LeftOut
from gradflow.settings.benchmark import BenchmarkSettings

RULE = 2
"""Which rule of training made a row: to be raised when the rule changes, so rows are made anew."""
MOST_RUNS = 1_000_000
"""A larger grid is refused: it is a slip, and making the list of its runs alone fills memory."""

_SHARED = (
    "task",
    "optimizer",
    "clip",
    "batch",
    "updates",
    "evaluate_every",
    "patience",
    "train_size",
    "validation_size",
    "test_size",
    "overlap",
    "seed",
)


@dataclass(frozen=True)
class Grid:
    """All that is compared: tasks by delay, models, combinations that cannot be."""

    settings: BenchmarkSettings
    tasks: tuple[SequenceTask, ...]
    models: tuple[BenchmarkModel, ...]
    left_out: tuple[LeftOut, ...]
    target: int
    notes: tuple[str, ...] = ()

    def runs(self) -> Iterator[dict[str, Any]]:
        """Yield the settings of each run: those of `train_one`.

        Short ones and long ones take turns, so that an estimate from the first is no bad one.
        """
        document = self.settings.to_json()
        code = {model.cell: code_of(model.cell) for model in self.models}
        for draw in range(self.settings.seeds):
            for rate in self.settings.learning_rate:
                for model in self.models:
                    for delay in self.settings.delay:
                        own = {"delay": delay, "learning_rate": rate, "draw": draw}
                        yield _settings(document, model) | own | code[model.cell]


def make_grid(settings: BenchmarkSettings) -> Grid:
    """Work out the grid, and refuse what cannot be before anything is trained.

    Raises:
        SettingError: a task without a form at a delay, sets that would overlap, a wrong match,
            more runs than `MOST_RUNS`.
        UnknownNameError, CellLoadError: a cell that does not exist or does not load.
        GateValueError: no cell can have any of the initializations.
    """
    document = settings.to_json()
    tasks = tuple(make_task(document, delay) for delay in settings.delay)
    for task in tasks:
        overlap = settings.overlap != "never"
        require_enough(task, set_sizes(document), overlap=overlap)
    counting = Counting(tasks[0], embedding_width(settings))
    notes = [note for cell in settings.cell for note in _width_notes(cell, counting, settings)]
    target = match_target(counting, settings.cell, hidden=settings.hidden, match=settings.match)
    left_out: list[LeftOut] = []
    models = _models(settings, counting, target, left_out)
    _require_few_enough(settings, len(models))
    return Grid(settings, tasks, models, tuple(left_out), target, tuple(notes))


def _require_few_enough(settings: BenchmarkSettings, models: int) -> None:
    runs = models * len(settings.delay) * len(settings.learning_rate) * settings.seeds
    if runs > MOST_RUNS:
        raise SettingError(
            f"a benchmark makes {MOST_RUNS:,} runs at most; {models} models, "
            f"{len(settings.delay)} delays, {len(settings.learning_rate)} learning rates and "
            f"{settings.seeds:,} seeds are {runs:,}. Ask for fewer --seeds."
        )


def embedding_width(settings: BenchmarkSettings) -> int:
    """Return the width of the embedding, 0 where tokens are one-hot or there are none."""
    return 0 if settings.encoding == "one-hot" or settings.task == "adding" else settings.embedding


def code_of(cell: str) -> dict[str, str]:
    """Return where a user's file is, in full, and its sha256; nothing for other cells.

    So a row of other code is not taken for one of this, and a worker finds the file.
    """
    place, _, name = cell.rpartition(":")
    path = Path(place).expanduser()
    if not is_place(cell) or path.suffix != ".py":
        return {}
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"cell": f"{path.resolve()}:{name}", "cell_sha256": digest}


def _settings(document: Mapping[str, Any], model: BenchmarkModel) -> dict[str, Any]:
    """Return of a run's settings what all runs of a model share: all that its numbers depend on."""
    task = document["task"]
    shared = {name: document[name] for name in (*_SHARED, *OWN_SETTINGS[task])}
    embeds = document["encoding"] == "embedding" and task != "adding"
    own = {"cell": model.cell, "init": model.init, "hidden": model.hidden, "rule": RULE}
    return shared | own | {"embedding": document["embedding"] if embeds else 0}


def _width_notes(cell: str, counting: Counting, settings: BenchmarkSettings) -> list[str]:
    """Build a cell once, as a wrong one must be refused; tell where it has a width of its own."""
    hidden = settings.hidden
    network = make_network(counting.task, cell=cell, hidden=hidden, embedding=counting.embedding)
    own = network.head.in_features
    if own == hidden:
        return []
    return [f"{cell} was asked for {hidden} units and has {own}: it is not of the same width."]


def _models(
    settings: BenchmarkSettings, counting: Counting, target: int, left_out: list[LeftOut]
) -> tuple[BenchmarkModel, ...]:
    """Return the models of both comparisons, each once; one may be in both."""
    found: list[BenchmarkModel] = []
    for cell in settings.cell:
        widths = _widths(settings.hidden, counting, cell, target, left_out)
        for init in settings.init:
            if (reason := _cannot_have(init, cell, counting, settings.hidden)) is not None:
                left_out.append(LeftOut(cell, init, (WIDTH, PARAMETERS), reason))
                continue
            for hidden, comparisons in widths.items():
                parameters = counting.total(cell, hidden)
                found.append(BenchmarkModel(cell, init, hidden, parameters, comparisons))
    if not found:
        raise GateValueError(
            f"--init {','.join(settings.init)} cannot be given to any of {','.join(settings.cell)}"
            f": {left_out[-1].reason}"
        )
    return tuple(found)


def _widths(
    hidden: int, counting: Counting, cell: str, target: int, left_out: list[LeftOut]
) -> dict[int, tuple[str, ...]]:
    """Return the widths of a cell, and for each the comparisons that it is in."""
    try:
        matched = nearest_width(counting, cell, target)
    except CellLoadError as problem:
        left_out.append(LeftOut(cell, None, (PARAMETERS,), str(problem)))
        return {hidden: (WIDTH,)}
    if matched == hidden:
        return {hidden: (WIDTH, PARAMETERS)}
    return {hidden: (WIDTH,), matched: (PARAMETERS,)}


def _cannot_have(init: str, cell: str, counting: Counting, hidden: int) -> str | None:
    """Return why a cell cannot have an initialization, None where it can."""
    if init == AS_MADE:
        return None
    try:
        make_network(
            counting.task, cell=cell, hidden=hidden, embedding=counting.embedding, init=init
        )
    except (GateValueError, CellLoadError, SettingError) as problem:
        return str(problem)
    return None
