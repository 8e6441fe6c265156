"""What a benchmark would run: its grid, what is there already, and how long the rest may take."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from gradflow.records.base import Json
from gradflow.records.benchmark import BenchmarkModel, LeftOut


@dataclass(frozen=True)
class BenchmarkPlan:
    """The plan of a benchmark.

    `seconds` is what the runs that are left take together on one worker, None where unknown;
    `calibrated` where stored runs of this grid set its scale, else it is a guess.
    """

    task: str
    delays: tuple[int, ...]
    models: tuple[BenchmarkModel, ...]
    learning_rates: tuple[float, ...]
    seeds: int
    left_out: tuple[LeftOut, ...]
    total: int
    done: int
    failed: int
    to_run: int
    seconds: float | None
    calibrated: bool

    def wall_seconds(self, workers: int) -> float | None:
        """Return the estimate for so many workers; None where nothing is known."""
        if self.seconds is None or not self.to_run:
            return self.seconds
        return self.seconds / min(workers, self.to_run)

    def to_json(self, workers: int) -> Json:
        """Return the plan as a strict JSON document."""
        return {
            "schema": "gradflow/benchmark-plan/1",
            **asdict(self),
            "workers": workers,
            "wall_seconds": self.wall_seconds(workers),
        }
