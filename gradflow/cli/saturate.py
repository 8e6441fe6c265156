"""`gradflow saturate`: do the cells stay finite, forward and backward, at any size of input?"""

from __future__ import annotations

from typing import Annotated

import typer

from gradflow.cli.common import deliver, measure, read_request
from gradflow.cli.options import (
    Config,
    Debug,
    Device,
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
)

_PANEL = "What is tried"
_DTYPES = ("float16", "bfloat16", "float32", "float64")


def saturate(
    context: typer.Context,
    cell: Annotated[
        TextList,
        setting(
            "Cells: lstm, gru (both resets), rnn (tanh, relu), or your own as file.py:make_cell.",
            default="lstm,gru,rnn",
            panel=_PANEL,
            names=("lstm", "gru", "rnn"),
        ),
    ] = None,
    dtype: Annotated[
        TextList,
        setting("Number formats.", default=",".join(_DTYPES), panel=_PANEL, names=_DTYPES),
    ] = None,
    magnitude: Annotated[
        TextList,
        setting(
            "Sizes of what is put in, with both signs; max is the dtype's largest number (its "
            "square root for input and state).",
            default="1e2,1e4,1e8,max",
            panel=_PANEL,
        ),
    ] = None,
    steps: Annotated[Text, setting("Time steps.", default="4", panel=_PANEL)] = None,
    hidden: Annotated[Text, setting("Hidden units.", default="8", panel=_PANEL)] = None,
    input_size: Annotated[Text, setting("Input width.", default="8", panel=_PANEL)] = None,
    batch: Annotated[Text, setting("Samples.", default="3", panel=_PANEL)] = None,
    beyond: Annotated[
        Switch,
        typer.Option(
            "--beyond/--no-beyond",
            help="Inputs and states up to the largest number itself, where overflow is expected.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    device: Device = None,
    seed: Seed = None,
    config: Config = None,
    out: Out = None,
    format: Format = None,
    style: Style = None,
    quiet: Quiet = False,
    debug: Debug = False,
    force: Force = False,
) -> None:
    """Do the cells stay finite, forward and backward, when their gates saturate?

    Puts huge numbers into each gate, the input and the state, in each dtype,
    and names the first tensor that is not finite, and whether that is the
    cell's fault or an honest overflow.
    """
    request = read_request(context, "saturate")
    from gradflow.experiments.saturate import run_saturate
    from gradflow.present.saturate import saturate_outputs

    result = measure(request, run_saturate)
    deliver(request, result, saturate_outputs(result, style=request.style))
