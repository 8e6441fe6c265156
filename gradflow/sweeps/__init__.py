"""A sweep: many tasks of one work, each row stored as it comes, on one machine or a cluster."""

from gradflow.records.sweeps import StoredRow
from gradflow.sweeps.sweep import SweepOutcome, run_sweep
from gradflow.sweeps.tasks import SweepTask

__all__ = ["StoredRow", "SweepOutcome", "SweepTask", "run_sweep"]
