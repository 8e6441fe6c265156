"""`gradflow params`: how many parameters has a network, and which width matches another's?"""

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
)

_NETWORK, _COUNT = "The network", "How it is counted"
_DTYPES = ("float64", "float32", "bfloat16", "float16")


def params(
    context: typer.Context,
    cell: Annotated[
        TextList,
        setting(
            "Cells to count.",
            default="rnn,gru,lstm",
            panel=_NETWORK,
            names=("rnn", "gru", "lstm"),
        ),
    ] = None,
    input_size: Annotated[Text, setting("Input width.", default="10", panel=_NETWORK)] = None,
    hidden: Annotated[Text, setting("Hidden units.", default="128", panel=_NETWORK)] = None,
    layers: Annotated[Text, setting("Layers.", default="1", panel=_NETWORK)] = None,
    bidirectional: Annotated[
        Switch,
        typer.Option(
            "--bidirectional/--one-direction",
            help="Read the sequence both ways.",
            rich_help_panel=_NETWORK,
        ),
    ] = None,
    projection: Annotated[
        Text,
        setting("Width to which an LSTM projects h; 0 for none.", default="0", panel=_NETWORK),
    ] = None,
    output_size: Annotated[
        Text, setting("Width of a linear head; 0 for none.", default="0", panel=_NETWORK)
    ] = None,
    bias: Annotated[
        Switch,
        typer.Option("--bias/--no-bias", help="Cells with biases.", rich_help_panel=_NETWORK),
    ] = None,
    one_bias: Annotated[
        Switch,
        typer.Option(
            "--one-bias/--two-biases",
            help="Put first the count with one bias per gate (textbooks), or with two (torch).",
            rich_help_panel=_COUNT,
        ),
    ] = None,
    match: Annotated[
        Text,
        setting(
            "Find each cell's width with as many parameters as this: lstm:128, or a number.",
            default="no match",
            panel=_COUNT,
        ),
    ] = None,
    batch: Annotated[Text, setting("Samples, for memory.", default="1", panel=_COUNT)] = None,
    steps: Annotated[Text, setting("Time steps, for memory.", default="1", panel=_COUNT)] = None,
    dtype: Annotated[
        Text,
        setting("Number format, for memory.", default="float32", panel=_COUNT, names=_DTYPES),
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
    """How many parameters has a network, and which width matches another's?

    Counts by formula, in both conventions (one bias vector per gate, or torch's
    two), and in the module that torch builds; multiply-adds and memory beside.
    """
    request = read_request(context, "params")
    from gradflow.experiments.params import run_params
    from gradflow.present.params import params_outputs

    result = measure(request, run_params)
    deliver(request, result, params_outputs(result, style=request.style))
