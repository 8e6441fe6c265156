"""A sweep: many tasks of one work, each row stored as it comes, on one machine or a cluster.

`run_sweep` does what is not done yet and gives all rows; `plan_sweep` says what it would do;
`load_rows` reads a run folder's rows. A command that sweeps first calls `gradflow.store.begin_run`,
so that its folder can be told from a strange one whatever stops it, and leaves the executor and
the number of workers out of its settings' digest: no row depends on them.
"""

from gradflow.records.sweeps import StoredRow
from gradflow.sweeps.executors import EXECUTORS, require_executor
from gradflow.sweeps.plan import SweepPlan, plan_sweep
from gradflow.sweeps.row_store import has_rows, load_rows
from gradflow.sweeps.sweep import SweepOutcome, run_sweep
from gradflow.sweeps.tasks import SweepTask

__all__ = [
    "EXECUTORS",
    "StoredRow",
    "SweepOutcome",
    "SweepPlan",
    "SweepTask",
    "has_rows",
    "load_rows",
    "plan_sweep",
    "require_executor",
    "run_sweep",
]
