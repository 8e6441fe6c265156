"""The command line as a whole: what `gradflow` knows, in panels."""

from __future__ import annotations

from typing import Annotated

import typer

from gradflow import __version__
from gradflow.cli import (
    benchmark,
    decay,
    depth,
    doctor,
    explain,
    inits,
    inspect,
    params,
    parity,
    report,
    runs,
    saturate,
    spectrum,
    speed,
    step,
    watch,
)

MEASURE, CHECK, LEARN, STUDY, RESULTS = "Measure", "Check", "Learn", "Study", "Results"

app = typer.Typer(
    name="gradflow",
    help="Measure how much of a recurrent network's state at step 0 is still felt at step T.",
    epilog="Settings: flag, then GRADFLOW_* variable, then --config, then default. "
    "Exit codes: 0 passed, 1 a check failed, 2 wrong request, 3 our fault, 130 interrupted.",
    context_settings={"help_option_names": ["--help", "-h"]},
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
)
app.command("decay", rich_help_panel=MEASURE)(decay.decay)
app.command("depth", rich_help_panel=MEASURE)(depth.depth)
app.command("spectrum", rich_help_panel=MEASURE)(spectrum.spectrum)
app.command("speed", rich_help_panel=MEASURE)(speed.speed)
app.command("saturate", rich_help_panel=CHECK)(saturate.saturate)
app.command("parity", rich_help_panel=CHECK)(parity.parity)
app.command("inspect", rich_help_panel=CHECK)(inspect.inspect)
app.command("explain", rich_help_panel=CHECK)(explain.explain)
app.command("step", rich_help_panel=LEARN)(step.step)
app.command("params", rich_help_panel=LEARN)(params.params)
app.command("inits", rich_help_panel=LEARN)(inits.inits)
app.command("benchmark", rich_help_panel=STUDY)(benchmark.benchmark)
app.command("runs", rich_help_panel=STUDY)(runs.runs)
app.command("watch", rich_help_panel=STUDY)(watch.watch)
app.command("report", rich_help_panel=RESULTS)(report.report)
app.command("doctor", rich_help_panel=RESULTS)(doctor.doctor)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"gradflow {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def gradflow(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Measure how much of a recurrent network's state at step 0 is still felt at step T."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
