"""The options of commands that sweep: where runs are made, on how many processes, what is planned.

They are no settings: no number of a result depends on them but times and memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from gradflow.cli.common import Request
from gradflow.cli.options import Text, one_of, with_default
from gradflow.cli.streams import write_result, write_table

if TYPE_CHECKING:
    from gradflow.records.benchmark_plan import BenchmarkPlan
    from gradflow.settings.sweeps import SweepOptions

_PANEL = "Where the runs are made"

Executor = Annotated[
    Text,
    typer.Option(
        metavar="NAME",
        help=with_default(
            "serial, local (processes here), slurm, or a dask scheduler's address.", "local"
        ),
        envvar="GRADFLOW_EXECUTOR",
        autocompletion=one_of("serial", "local", "slurm"),
        rich_help_panel=_PANEL,
    ),
]
Workers = Annotated[
    Text,
    typer.Option(
        metavar="N",
        help=with_default("Worker processes, one thread each.", "one for each core"),
        envvar="GRADFLOW_WORKERS",
        rich_help_panel=_PANEL,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Only say what would be run, how long it may take, and what is there.",
        envvar="GRADFLOW_DRY_RUN",
        rich_help_panel=_PANEL,
    ),
]
RetryFailed = Annotated[
    bool,
    typer.Option(
        "--retry-failed",
        help="Make runs that crashed once more.",
        envvar="GRADFLOW_RETRY_FAILED",
        rich_help_panel=_PANEL,
    ),
]


def read_sweep(context: typer.Context) -> SweepOptions:
    """Take the options of a sweep out of a command's parameters, and check them.

    Raises:
        SettingError: a number of workers that cannot be.
    """
    from gradflow.config import SWEEP_OPTIONS
    from gradflow.settings.sweeps import SweepOptions

    given = {name: context.params.pop(name) for name in SWEEP_OPTIONS}
    labels = {name: f"--{name.replace('_', '-')}" for name in SWEEP_OPTIONS}
    return SweepOptions.build({k: v for k, v in given.items() if v is not None}, labels)


def sweeping(run: Callable[..., Any], request: Request, how: SweepOptions) -> Callable[..., Any]:
    """Return `run` bound to the run folder and to how it sweeps.

    The folder says whose it is before the first run is made, so that the same command may go on;
    of a wrong request nothing is written.
    """
    from gradflow import config, store

    toml = config.settings_toml(request.command, request.settings)
    return partial(
        run,
        folder=request.folder,
        executor=how.executor,
        workers=how.workers,
        retry_failed=how.retry_failed,
        begin=partial(store.begin_run, request.folder, toml),
    )


def show_plan(request: Request, make: Callable[..., BenchmarkPlan], how: SweepOptions) -> NoReturn:
    """Show what would be run, and end the command; nothing is written."""
    from gradflow import documents
    from gradflow.present.benchmark_plan import plan_rows, plan_table

    plan = make(request.settings, request.folder, how)
    workers = 1 if how.executor == "serial" else how.workers or os.cpu_count() or 1
    if request.format == "json":
        write_result(documents.json_text(plan.to_json(workers)))
    elif request.format == "csv":
        write_result(documents.csv_text(plan_rows(plan)))
    else:
        write_table(plan_table(plan, workers))
    raise typer.Exit(0)
