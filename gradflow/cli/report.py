"""`gradflow report`: stored results as figures and one page to send to a colleague."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, cast

import typer

from gradflow.cli.common import Request, close, measuring, read_request, show
from gradflow.cli.options import (
    Config,
    Debug,
    Force,
    Format,
    Out,
    Quiet,
    Style,
    Text,
    TextList,
    setting,
)
from gradflow.cli.report_runs import find_runs, require_runs, run_studies

if TYPE_CHECKING:
    from gradflow.provenance import Stopwatch
    from gradflow.records.report import LeftOut, StoredRun
    from gradflow.settings.report import ReportSettings

PAGE = "report.html"
OLD = ("figures/*", "tables/*.csv")  # what an earlier report left, and this one may not have
_WHAT, _LOOK = "What is shown", "How it looks"


def report(
    context: typer.Context,
    runs: Annotated[
        TextList,
        typer.Argument(
            metavar="RUN_DIR...",
            help="Run folders, or folders of run folders. Nothing is measured again.",
            show_default=False,
        ),
    ] = None,
    studies: Annotated[
        TextList,
        setting("Presets or TOML files to run first.", default="none", panel=_WHAT),
    ] = None,
    title: Annotated[
        Text,
        setting("The page's heading.", default="Gradient flow in recurrent networks", panel=_LOOK),
    ] = None,
    figure_format: Annotated[
        TextList,
        setting(
            "Formats of the figure files.",
            default="png,svg,pdf",
            panel=_LOOK,
            names=("png", "svg", "pdf"),
        ),
    ] = None,
    style: Style = None,
    seed: Annotated[
        Text, setting("Seed of the studies.", default="each study's own", panel=_WHAT)
    ] = None,
    config: Config = None,
    out: Out = None,
    format: Format = None,
    quiet: Quiet = False,
    debug: Debug = False,
    force: Force = False,
) -> None:
    """Stored results as one page, figures and tables.

    Shows the results of any command in report.html (one file that needs no
    network), report.md, figures/ and tables/. `gradflow report --config report`
    runs the usual studies first.
    """
    request = read_request(context, "report")
    from gradflow.provenance import Stopwatch

    watch = Stopwatch()
    settings = cast("ReportSettings", request.settings)
    folders, unrun, stopped = run_studies(request, settings)
    found, unread = find_runs([*folders, *(settings.runs or ())])
    left_out = (*unrun, *unread)
    require_runs(found, left_out)
    environment = {} if stopped is None else {"interrupted": stopped}
    deliver_report(request, found, left_out, watch=watch, environment=environment)


def deliver_report(
    request: Request,
    found: Sequence[StoredRun],
    left_out: Sequence[LeftOut],
    *,
    watch: Stopwatch,
    environment: Mapping[str, str],
) -> None:
    """Draw and write a report, show its summary, and end the command.

    Raises:
        RunFolderError, OutputError: it cannot be stored, or not be shown.
        Interrupted: its studies were stopped; those that were done are shown and stored.
        typer.Exit: otherwise always, with 1 where a check failed or a result was left out.
    """
    from gradflow import config, documents, store
    from gradflow.present.report import build_report, report_files, report_outputs, report_result
    from gradflow.provenance import provenance

    settings = cast("ReportSettings", request.settings)
    with measuring(request) as progress:
        report = build_report(
            found,
            left_out,
            title=settings.title,
            style=request.style,
            formats=settings.figure_format,
            progress=progress,
        )
        files = report_files(report)
    made = {**provenance("report", settings, watch), **environment}
    result = report_result(report, config=settings.to_json(), environment=made)
    outputs, document = report_outputs(result), result.to_json()
    show(request.format, document, outputs)
    files = {"config.toml": config.settings_toml("report", settings).encode(), **files}
    files["report.json"] = documents.json_text(document).encode()
    store.save_files(request.folder, files, old=OLD)
    close(request, result, outputs, shown=request.folder / PAGE)
