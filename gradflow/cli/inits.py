"""`gradflow inits`: what does an initialization do to gradient flow, before any training?"""

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
    Text,
    TextList,
    dtype_setting,
    norm_setting,
    reset_setting,
    setting,
    start_setting,
    state_setting,
)

_WHAT, _HOW = "What is compared", "How it is measured"
_NAMES = (
    "torch-default",
    "xavier",
    "he",
    "orthogonal-per-gate",
    "orthogonal-stacked",
    "scaled-identity:0.95",
    "forget-bias:1",
    "forget-bias:2",
    "forget-bias:5",
    "chrono:100",
    "as-commonly-copied",
)


def inits(
    context: typer.Context,
    cell: Annotated[
        TextList,
        setting(
            "Cells: lstm, gru, rnn.", default="lstm", panel=_WHAT, names=("lstm", "gru", "rnn")
        ),
    ] = None,
    init: Annotated[
        TextList,
        setting(
            "Initializations; some take a number (chrono:500), and + joins them "
            "(he+forget-bias:1). There is zero-bias too.",
            default=",".join(_NAMES),
            panel=_WHAT,
            names=(*_NAMES, "zero-bias"),
        ),
    ] = None,
    steps: Annotated[Text, setting("Time steps T.", default="300", panel=_WHAT)] = None,
    hidden: Annotated[Text, setting("Hidden units.", default="64", panel=_WHAT)] = None,
    input_size: Annotated[Text, setting("Input width.", default="8", panel=_WHAT)] = None,
    seeds: Annotated[Text, setting("Draws of each.", default="5", panel=_WHAT)] = None,
    input: Annotated[
        Text,
        setting(
            "The input, the same for all: normal or zero.",
            default="normal",
            panel=_HOW,
            names=("normal", "zero"),
        ),
    ] = None,
    start: Annotated[Text, start_setting(_HOW)] = None,
    state: Annotated[Text, state_setting(_HOW)] = None,
    norm: Annotated[Text, norm_setting(_HOW)] = None,
    threshold: Annotated[
        Text, setting("The norm at which a gradient is gone.", default="0.001", panel=_HOW)
    ] = None,
    reset: Annotated[Text, reset_setting(_HOW)] = None,
    dtype: Annotated[Text, dtype_setting(_HOW)] = None,
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
    """What does an initialization do to gradient flow, before any training?

    Draws each several times on the same cell and input, and measures how the
    gradient fades, when it is gone, how the gates are spread, and the singular
    values of the first step.
    """
    request = read_request(context, "inits")
    from gradflow.experiments.inits import run_inits
    from gradflow.present.inits import inits_outputs

    result = measure(request, run_inits)
    deliver(request, result, inits_outputs(result, style=request.style))
