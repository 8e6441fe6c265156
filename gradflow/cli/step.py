"""`gradflow step`: one step of a cell, or several, worked by hand."""

from __future__ import annotations

from typing import Annotated

import typer

from gradflow.cli.common import deliver, measure, read_request
from gradflow.cli.options import (
    Config,
    Debug,
    Force,
    Format,
    Out,
    Quiet,
    Seed,
    Style,
    Switch,
    Text,
    TextList,
    setting,
    with_default,
)

_LSTM, _GRU, _BOTH = "An LSTM's numbers", "A GRU's numbers", "Both cells"


def step(
    context: typer.Context,
    cell: Annotated[
        Text,
        typer.Argument(
            metavar="CELL", help=with_default("lstm or gru.", "lstm"), show_default=False
        ),
    ] = None,
    c: Annotated[Text, setting("Cell state before step 1.", default="1", panel=_LSTM)] = None,
    forget_gate: Annotated[
        TextList, setting("Forget gate: one value, or one per step.", default="0.9", panel=_LSTM)
    ] = None,
    input_gate: Annotated[
        TextList,
        setting("Input gate, or coupled for 1 - forget gate.", default="coupled", panel=_LSTM),
    ] = None,
    output_gate: Annotated[TextList, setting("Output gate.", default="0.5", panel=_LSTM)] = None,
    h: Annotated[Text, setting("State before step 1.", default="1", panel=_GRU)] = None,
    update_gate: Annotated[
        TextList, setting("Update gate z: one value, or one per step.", default="0.9", panel=_GRU)
    ] = None,
    convention: Annotated[
        Text,
        setting(
            "Does z keep the old state (torch), or write the new (several papers)?",
            default="keep",
            panel=_GRU,
            names=("keep", "write"),
        ),
    ] = None,
    candidate: Annotated[
        TextList, setting("Candidate g or n, in [-1, 1].", default="0", panel=_BOTH)
    ] = None,
    figure: Annotated[
        Switch,
        typer.Option("--figure/--no-figure", help="Draw the cell.", rich_help_panel=_BOTH),
    ] = None,
    seed: Seed = None,
    config: Config = None,
    out: Out = None,
    format: Format = None,
    style: Style = None,
    quiet: Quiet = False,
    debug: Debug = False,
    force: Force = False,
) -> None:
    """What does one step, or several, make of given gates and states?

    Puts the numbers into the cell's equations, multiplies the keep gates up to
    the direct derivative, and says what that leaves out. --forget-gate
    0.9,0.8,0.5 are three steps; a value given once serves them all.
    """
    request = read_request(context, "step")
    from gradflow.experiments.step import run_step
    from gradflow.present.step import step_outputs

    result = measure(request, run_step)
    deliver(request, result, step_outputs(result, style=request.style))
