"""`gradflow depth`: how much of each layer of a stack is still felt at the top, at the end?"""

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

_STACK, _DROP, _FED, _HOW = (
    "The stack",
    "What is dropped",
    "What it is fed",
    "How it is measured",
)
_READS = ("state", "output", "forward state", "reverse state", "forward output", "reverse output")


def depth(
    context: typer.Context,
    cell: Annotated[
        TextList,
        setting(
            "Cells to stack: lstm, gru, rnn, or your own (or a whole torch layer) as file.py:make.",
            default="lstm",
            panel=_STACK,
            names=("lstm", "gru", "rnn"),
        ),
    ] = None,
    layers: Annotated[Text, setting("Layers.", default="3", panel=_STACK)] = None,
    bidirectional: Annotated[
        Switch,
        typer.Option(
            "--bidirectional/--one-direction",
            help="Read the sequence both ways, in every layer.",
            rich_help_panel=_STACK,
        ),
    ] = None,
    residual: Annotated[
        Text,
        setting(
            "Residual links around layers: yes, no, or both to compare.",
            default="both",
            panel=_STACK,
            names=("both", "yes", "no"),
        ),
    ] = None,
    hidden: Annotated[
        Text, setting("Hidden units of each cell.", default="32", panel=_STACK)
    ] = None,
    init: Annotated[
        Text,
        setting(
            "Initialization, as in gradflow inits: xavier, chrono:100, he+forget-bias:1, ...",
            default="torch-default",
            panel=_STACK,
        ),
    ] = None,
    reset: Annotated[
        Text,
        setting(
            "GRU: reset before the matrix product (textbooks) or after it (torch).",
            default="after",
            panel=_STACK,
            names=("after", "before"),
        ),
    ] = None,
    dropout: Annotated[
        Text, setting("Rate of dropout between layers.", default="0", panel=_DROP)
    ] = None,
    recurrent_dropout: Annotated[
        Text,
        setting(
            "Rate of dropout on the old h where gates and candidate read it.",
            default="0",
            panel=_DROP,
        ),
    ] = None,
    masks: Annotated[
        Text,
        setting(
            "A fresh mask at every step, one per sequence (variational), or both to compare.",
            default="both",
            panel=_DROP,
            names=("both", "step", "sequence"),
        ),
    ] = None,
    steps: Annotated[Text, setting("Time steps T.", default="50", panel=_FED)] = None,
    batch: Annotated[Text, setting("Samples.", default="8", panel=_FED)] = None,
    shortest: Annotated[
        Text,
        setting(
            "Length of the shortest sample; the others lie evenly between it and T.",
            default="all have T steps",
            panel=_FED,
        ),
    ] = None,
    input_size: Annotated[Text, setting("Input width.", default="16", panel=_FED)] = None,
    read: Annotated[
        Text,
        setting(
            "What is read of the last layer: its final state, or its output at the last step; "
            "of one direction as 'reverse output'.",
            default="state",
            panel=_HOW,
            names=_READS,
        ),
    ] = None,
    state: Annotated[
        Text,
        setting(
            "Part of the states: c, h or joint.",
            default="joint",
            panel=_HOW,
            names=("c", "h", "joint"),
        ),
    ] = None,
    norm: Annotated[
        Text,
        setting(
            "spectral or frobenius.",
            default="spectral",
            panel=_HOW,
            names=("spectral", "frobenius"),
        ),
    ] = None,
    dtype: Annotated[
        Text,
        setting("float64 or float32.", default="float64", panel=_HOW, names=("float64", "float32")),
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
    """How much of each layer is still felt at the top of a stack, at its end?

    Measures ||ds_T(top)/ds_t(layer)|| for every layer and step, exactly: with and
    without residual links, under fresh and under variational dropout masks, on
    padded batches by lag from each sample's own end.
    """
    request = read_request(context, "depth")
    from gradflow.experiments.depth import run_depth
    from gradflow.present.depth import depth_outputs

    result = measure(request, run_depth)
    deliver(request, result, depth_outputs(result, style=request.style))
