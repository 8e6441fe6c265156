"""The way from a request to an exit code, the same for every command.

A command reads its request, measures, and delivers: the result to standard output, then the run
folder, then notes and the figure's path to standard error.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import typer

from gradflow.cli.checks import passed_checks
from gradflow.cli.options import FORMATS, STYLES
from gradflow.cli.progress import ProgressReport
from gradflow.cli.streams import kept_for_the_result, say, write_result, write_table
from gradflow.errors import Interrupted, UnknownNameError, nearest_name

if TYPE_CHECKING:
    from gradflow.config import Settings
    from gradflow.documents import Json
    from gradflow.present.outputs import Outputs
    from gradflow.records import Result

AnyResult = TypeVar("AnyResult", bound="Result")
COMMON = ("config", "out", "format", "quiet", "debug", "force")


@dataclass(frozen=True)
class Request:
    """What was asked for: the settings of the question, and how the answer is shown and kept."""

    command: str
    settings: Settings
    folder: Path
    format: str
    quiet: bool
    style: str = STYLES[0]


def read_request(context: typer.Context, model: str, more: tuple[str, ...] = ()) -> Request:
    """Read the flags of a command, with the environment and `--config` behind them.

    Nothing is measured yet: a wrong value, or a run folder that must not be written, ends here.

    Args:
        context: of the command.
        model: the command, whose settings are read.
        more: formats that this command has beside those that all have.

    Raises:
        RequestError: see `gradflow.config.resolve_settings` and `gradflow.store.require_free`.
    """
    from gradflow import config, store

    given = dict(context.params)
    how = {name: given.pop(name) for name in COMMON}
    style = require_style(given.pop("style", None))  # not every command draws
    if not how["quiet"]:
        for sentence in config.unknown_variables(os.environ):
            say(f"Note: {sentence}")
    settings = config.resolve_settings(
        config.COMMAND_SETTINGS[model],
        flags=given,
        environment=os.environ,
        config=how["config"],
    )
    digest = config.settings_digest(model, settings)
    folder = store.run_folder(model, digest, how["out"])
    store.require_free(folder, digest, force=how["force"])
    shown_as = require_format(how["format"], more)
    return Request(model, settings, folder, shown_as, how["quiet"], style)


def require_format(name: str | None, more: tuple[str, ...] = ()) -> str:
    """Return the output format, the table when none is named.

    Raises:
        UnknownNameError: there is no such format.
    """
    if name is None:
        return FORMATS[0]
    known = (*FORMATS, *more)
    if name not in known:
        raise UnknownNameError(f"--format knows no {name!r}. {nearest_name(name, known)}")
    return name


def require_style(name: str | None) -> str:
    """Return the style of the figures, that of the screen when none is named.

    Raises:
        UnknownNameError: there is no such style.
    """
    if name is None:
        return STYLES[0]
    if name not in STYLES:
        raise UnknownNameError(f"--style knows no {name!r}. {nearest_name(name, STYLES)}")
    return name


def measure(request: Request, run: Callable[..., AnyResult]) -> AnyResult:
    """Return `run(settings, progress=...)`, with progress on standard error.

    What anything else writes goes to standard error too: standard output is the result's.
    Of a run that is interrupted, what it has measured is the result.

    Raises:
        Interrupted: stopped before anything was measured.
    """
    try:
        with measuring(request) as progress:
            return run(request.settings, progress=progress)
    except Interrupted as stop:
        from gradflow.records import Result

        if not isinstance(stop.partial, Result):  # nothing, or a part of one measurement
            raise
        return cast("AnyResult", stop.partial)


@contextlib.contextmanager
def measuring(request: Request) -> Iterator[ProgressReport]:
    """Yield the progress of a measurement; what it prints itself goes to standard error."""
    with (
        ProgressReport(enabled=not request.quiet) as progress,
        kept_for_the_result(),
        _in_this_folder(),
    ):
        yield progress


@contextlib.contextmanager
def _in_this_folder() -> Iterator[None]:
    """Come back to the working directory: a user's cell may leave it while it runs."""
    start = None
    with contextlib.suppress(FileNotFoundError):  # removed; then there is no way back
        start = Path.cwd()
    try:
        yield
    finally:
        if start is not None:
            os.chdir(start)


def deliver(request: Request, result: Result, outputs: Outputs) -> None:
    """Show a result, store it, and end the command with the exit code that its checks give.

    Raises:
        OutputError, RunFolderError: it cannot be shown, or not be stored.
        Interrupted: the run was stopped; what it measured is shown and stored.
        typer.Exit: otherwise always, with 0 or 1.
    """
    from gradflow import config, store
    from gradflow.present.theme import theme_of

    document = result.to_json()
    show(request.format, document, outputs)
    figures = outputs.figure_files(theme_of(request.style).formats)
    store.save_run(
        request.folder,
        document,
        config=config.settings_toml(request.command, request.settings),
        tables=outputs.tables,
        figures=figures,
    )
    close(request, result, outputs, shown=store.figure_path(request.folder, figures))


def show(shown_as: str, document: Json, outputs: Outputs) -> None:
    """Write a result to standard output, in the format that was asked for.

    Args:
        shown_as: "table", "json", "csv" or a format of the command's own.
        document: the result as JSON.
        outputs: the result in all its other forms.

    Raises:
        OutputError: it cannot be written.
    """
    from gradflow import documents

    if shown_as == "json":
        write_result(documents.json_text(document))
    elif shown_as == "csv":
        write_result(documents.csv_text(outputs.rows))
    elif shown_as in outputs.formats:
        write_result(outputs.formats[shown_as])
    else:
        write_table(outputs.table)


def close(request: Request, result: Result, outputs: Outputs, *, shown: Path) -> None:
    """Say what is beside the result, and end the command.

    Raises:
        Interrupted: the run was stopped.
        typer.Exit: otherwise always, with 0 or 1.
    """
    for check in result.checks:
        if not check.passed:
            say(f"Check failed: {check.name} ({check.detail})")
    if not request.quiet:
        if passed := passed_checks(result.checks):
            say(passed)
        if request.format != "table":  # the table has them below it
            for note in outputs.notes:
                say(f"Note: {note}")
        say(str(shown))
    if "interrupted" in result.environment:
        how_far = result.environment["interrupted"]
        raise Interrupted(f"{how_far} What was measured is in {request.folder}.")
    raise typer.Exit(0 if result.passed else 1)
