"""`gradflow runs`: what is in a run folder, and how do two runs differ?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from gradflow.cli.common import require_format, show
from gradflow.cli.options import (
    Config,
    Debug,
    Force,
    Format,
    Out,
    Quiet,
    Seed,
    Switch,
    Text,
    TextList,
    setting,
)
from gradflow.cli.streams import say, write_result, write_table

if TYPE_CHECKING:
    from gradflow.config import RunsSettings
    from gradflow.present.tables import TextTable
    from gradflow.records.runs import RunFolder, RunsComparison, SweepListing

_WHAT, _COMPARED = "What is listed", "What is compared"
_LONG = 200  # rows; a longer table is written line by line


def runs(
    context: typer.Context,
    what: Annotated[
        TextList,
        typer.Argument(
            metavar="DIR | compare A B",
            help="A run folder; or compare, and two run folders of any command.",
            show_default=False,
        ),
    ] = None,
    failed: Annotated[
        Switch,
        typer.Option(
            "--failed/--no-failed",
            help="List only the tasks that failed.",
            show_default="no-failed",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    metric: Annotated[
        TextList,
        setting("Numbers to list or compare, by name.", default="seconds", panel=_WHAT),
    ] = None,
    factor: Annotated[
        Text,
        setting(
            "Exit with 1 where B's number is more than this times A's (below 1: less).",
            default="nothing is judged",
            panel=_COMPARED,
        ),
    ] = None,
    seed: Seed = None,
    config: Config = None,
    out: Out = None,
    format: Format = None,
    quiet: Quiet = False,
    debug: Debug = False,
    force: Force = False,
) -> None:
    """What is in a run folder, and how do two runs differ?

    Lists the tasks of a sweep, also while it runs; of another command, its
    stored result. Or sets two runs of any command side by side. Nothing is
    stored.
    """
    from gradflow.config import RunsSettings, resolve_settings
    from gradflow.experiments.runs import compare_runs, list_sweep

    shown = require_format(format)
    flags = {"what": what, "failed": failed, "metric": metric, "factor": factor, "seed": seed}
    settings = resolve_settings(RunsSettings, flags=flags, environment=os.environ, config=config)
    folders = settings.folders()
    if len(folders) == 1 and holds_result_alone(Path(folders[0])):
        show_stored(Path(folders[0]), shown, settings)
    result: SweepListing | RunsComparison
    if len(folders) == 1:
        from gradflow.present.runs import listing_rows, listing_table

        result = list_sweep(read_sweep(Path(folders[0]), details=shown == "json"), settings)
        table, rows = listing_table(result), listing_rows(result)
    else:
        from gradflow.present.runs import comparison_rows, comparison_table

        first, second = (read_run(Path(folder)) for folder in folders)
        result = compare_runs(first, second, settings)
        table, rows = comparison_table(result), comparison_rows(result)
    _deliver(result, shown, table, rows)


def holds_result_alone(folder: Path) -> bool:
    """Return whether a folder has a stored result, or the log of a watch, and no sweep."""
    from gradflow.records.watch_log import LOG_NAME
    from gradflow.sweeps import has_rows

    return not has_rows(folder) and any(
        (folder / name).is_file() for name in ("result.json", LOG_NAME)
    )


def show_stored(folder: Path, shown: str, settings: RunsSettings) -> NoReturn:
    """Show the stored result of a command that is no sweep, and end the command.

    Raises:
        SettingError: what is for the tasks of a sweep alone was asked for.
        RunFolderError: the result cannot be read.
    """
    from gradflow.errors import SettingError
    from gradflow.present.notebook import PRESENTERS
    from gradflow.store import load_result

    result = load_result(folder)
    asked = {"--failed": settings.failed, "--metric": settings.metric != type(settings)().metric}
    for flag, is_asked in asked.items():
        if is_asked:
            raise SettingError(
                f"{flag} chooses among the tasks of a sweep; {str(folder)!r} holds a result of "
                f"gradflow {result.command}, which is shown whole. Leave {flag} out."
            )
    show(shown, result.to_json(), PRESENTERS[result.command](result))
    raise typer.Exit(0)


def _deliver(
    result: SweepListing | RunsComparison,
    shown: str,
    table: TextTable,
    rows: list[dict[str, object]],
) -> None:
    """Show a listing or a comparison, and end the command by its checks."""
    from gradflow.documents import csv_text, json_text
    from gradflow.present.runs import long_table_text

    if shown == "json":
        write_result(json_text(result.to_json()))
    elif shown == "csv":
        write_result(csv_text(rows))
    elif len(table.rows) > _LONG:
        write_result(long_table_text(table))
    else:
        write_table(table)
    for check in result.checks:
        if not check.passed:
            say(f"Check failed: {check.name} ({check.detail})")
    raise typer.Exit(0 if result.passed else 1)


def read_sweep(folder: Path, *, details: bool) -> RunFolder:
    """Read the rows of a sweep.

    Raises:
        RunFolderError: there is no sweep in the folder.
    """
    from gradflow.records.runs import RunFolder
    from gradflow.sweeps import load_rows

    return RunFolder(str(folder), {}, rows=load_rows(folder, details=details))


def read_run(folder: Path) -> RunFolder:
    """Read what a run folder holds: a result, the rows of a sweep, or both.

    Raises:
        RunFolderError: there is neither.
    """
    from gradflow.config import load_config
    from gradflow.records.runs import RunFolder
    from gradflow.store import load_document
    from gradflow.sweeps import has_rows, load_rows

    rows = load_rows(folder, details=False) if has_rows(folder) else ()
    if rows and not (folder / "result.json").exists():
        settings = folder / "config.toml"
        known = load_config(settings) if settings.exists() else {}
        return RunFolder(str(folder), known, rows=rows)
    document = load_document(folder)
    return RunFolder(str(folder), document["config"], document, rows)
