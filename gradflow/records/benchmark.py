"""The record of `gradflow benchmark`: who learns to carry something over a delay, at what cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

from gradflow.records.base import Json, Result
from gradflow.records.benchmark_runs import BenchmarkRun, Spread

WIDTH, PARAMETERS = "same width", "nearest parameter count"
COMPARISONS = (WIDTH, PARAMETERS)
LEARNED, PARTLY, NOT_LEARNED = "learned", "partly", "not learned"
NO_RESULT = "no result"


@dataclass(frozen=True)
class TaskFacts:
    """The task at one delay, and what a model without memory reaches there.

    `different` is the number of different sequences (None: endless), `shared` how many of them are
    in more than one of the sets, `fingerprint` the sha256 of the sets (None before any run).
    """

    delay: int
    steps: int
    loss: float
    recall_loss: float
    accuracy: float
    different: int | None
    shared: int | None = None
    fingerprint: str | None = None


@dataclass(frozen=True)
class BenchmarkModel:
    """A cell with an initialization and a width, and the comparisons that it is part of."""

    cell: str
    init: str
    hidden: int
    parameters: int
    comparisons: tuple[str, ...]

    @property
    def name(self) -> tuple[str, str, int]:
        """What tells it from all others."""
        return (self.cell, self.init, self.hidden)


@dataclass(frozen=True)
class LeftOut:
    """A combination that cannot be; `init` None stands for all."""

    cell: str
    init: str | None
    comparisons: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class BenchmarkRow:
    """One model at one delay, with the learning rate that validation chose.

    `learning_rate` is None where no run was trained to its end. Spreads are over seeds. `costs`
    has parameters, multiply_adds, training_seconds, seconds_of_512, peak_bytes,
    process_peak_bytes, step_calls, updates and gradient_norm (the median before clipping).
    """

    cell: str
    init: str
    hidden: int
    delay: int
    comparisons: tuple[str, ...]
    learning_rate: float | None
    verdict: str
    accuracy: Spread | None
    loss: Spread | None
    recall_loss: Spread | None
    learned: int
    seeds: int
    costs: Mapping[str, Spread]
    reason: str | None = None

    @property
    def name(self) -> tuple[str, str, int]:
        """What tells its model from all others."""
        return (self.cell, self.init, self.hidden)


@dataclass(frozen=True)
class RateRow:
    """One model, delay and learning rate: whether it was stable, over all seeds.

    `gradient_norm` is the median over updates before clipping, `largest_gradient` the largest,
    `updates` those that were made.
    """

    cell: str
    init: str
    hidden: int
    delay: int
    learning_rate: float
    stable: bool
    diverged: int
    failed: int
    validation_loss: Spread | None
    validation_accuracy: Spread | None
    gradient_norm: Spread | None
    largest_gradient: Spread | None
    updates: Spread | None
    chosen: bool = False

    @property
    def name(self) -> tuple[str, str, int]:
        """What tells its model from all others."""
        return (self.cell, self.init, self.hidden)


@dataclass(frozen=True)
class ShortRate:
    """A learning rate that a model is stable at up to a delay, and not beyond."""

    cell: str
    init: str
    hidden: int
    learning_rate: float
    stable_at: tuple[int, ...]
    unstable_at: tuple[int, ...]


@dataclass(frozen=True)
class BenchmarkResult(Result):
    """A whole comparison. `target` is the number of parameters that widths were matched to.

    `runs` are all runs of the grid; of the test set only those of chosen learning rates tell.
    `supports` are sentences on what the comparison does and does not support.
    """

    command: ClassVar[str] = "benchmark"

    task: str
    tasks: tuple[TaskFacts, ...]
    target: int
    models: tuple[BenchmarkModel, ...]
    rows: tuple[BenchmarkRow, ...]
    rates: tuple[RateRow, ...]
    short_rates: tuple[ShortRate, ...]
    runs: tuple[BenchmarkRun, ...]
    left_out: tuple[LeftOut, ...] = ()
    supports: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def at(self, delay: int) -> TaskFacts:
        """Return the facts of a delay."""
        return next(facts for facts in self.tasks if facts.delay == delay)

    def compared(self, comparison: str) -> list[BenchmarkRow]:
        """Return the rows of one of the two comparisons, delay by delay."""
        return [row for row in self.rows if comparison in row.comparisons]

    def chosen_runs(self, row: BenchmarkRow) -> list[BenchmarkRun]:
        """Return the runs of a row's learning rate, seed by seed."""
        return self._runs_by_place.get((*row.name, row.delay, row.learning_rate), [])

    @cached_property
    def _runs_by_place(self) -> dict[tuple[Any, ...], list[BenchmarkRun]]:
        found: dict[tuple[Any, ...], list[BenchmarkRun]] = {}
        for run in self.runs:
            found.setdefault((*run.name, run.delay, run.learning_rate), []).append(run)
        return found

    def results_json(self) -> Json:
        """Return the contract's `results` object."""
        return {
            "task": self.task,
            "target": self.target,
            "tasks": [asdict(entry) for entry in self.tasks],
            "models": [asdict(entry) for entry in self.models],
            "rows": [asdict(entry) for entry in self.rows],
            "rates": [asdict(entry) for entry in self.rates],
            "short_rates": [asdict(entry) for entry in self.short_rates],
            "runs": [run.to_json() for run in self.runs],
            "left_out": [asdict(entry) for entry in self.left_out],
            "supports": list(self.supports),
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read a stored `gradflow/benchmark/1` document back."""
        results = document["results"]
        return cls(
            task=results["task"],
            target=results["target"],
            tasks=tuple(TaskFacts(**entry) for entry in results["tasks"]),
            models=tuple(BenchmarkModel(**_tuples(entry)) for entry in results["models"]),
            rows=tuple(_row(entry) for entry in results["rows"]),
            rates=tuple(RateRow(**_spreads(entry)) for entry in results["rates"]),
            short_rates=tuple(ShortRate(**_tuples(entry)) for entry in results["short_rates"]),
            runs=tuple(BenchmarkRun.from_json(entry) for entry in results["runs"]),
            left_out=tuple(LeftOut(**_tuples(entry)) for entry in results["left_out"]),
            supports=tuple(results["supports"]),
            notes=tuple(results["notes"]),
            **cls.frame_from_json(document),
        )


def _row(entry: Mapping[str, Any]) -> BenchmarkRow:
    costs = {name: Spread(**spread) for name, spread in entry["costs"].items()}
    return BenchmarkRow(**{**_tuples(_spreads(entry)), "costs": costs})


def _tuples(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(v) if isinstance(v, list) else v for key, v in entry.items()}


def _spreads(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry with its spreads read; `costs` are not touched."""
    return {
        key: Spread(**value) if isinstance(value, dict) and key != "costs" else value
        for key, value in entry.items()
    }
