"""`gradflow speed`: how long does the measurement take, beside the usual ways?"""

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
    setting,
)

_CASES, _HOW = "What is timed", "How it is timed"
_METHODS = ("restart", "chain", "chain-vmap", "unroll", "gradflow", "floor")


def speed(
    context: typer.Context,
    cell: Annotated[
        TextList,
        setting(
            "Cells: lstm, gru, rnn.",
            default="lstm",
            panel=_CASES,
            names=("lstm", "gru", "rnn"),
        ),
    ] = None,
    hidden: Annotated[TextList, setting("Hidden units.", default="32,64,128", panel=_CASES)] = None,
    steps: Annotated[TextList, setting("Time steps T.", default="50,200", panel=_CASES)] = None,
    dtype: Annotated[
        TextList,
        setting("Number formats.", default="float64", panel=_CASES, names=("float64", "float32")),
    ] = None,
    threads: Annotated[
        TextList, setting("Threads to compute with.", default="2", panel=_CASES)
    ] = None,
    method: Annotated[
        TextList,
        setting("Methods to time.", default=",".join(_METHODS), panel=_HOW, names=_METHODS),
    ] = None,
    rounds: Annotated[
        Text, setting("Rounds; each runs every method once.", default="5", panel=_HOW)
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
    """How long does the measurement take, beside the usual ways and its floor?

    Times torch's own ways to the same Jacobian norms and gradflow's in turns, on
    the same weights and states, checks that they agree, and compares with the
    bare matrix products.
    """
    request = read_request(context, "speed")
    from gradflow.experiments.speed import run_speed
    from gradflow.present.speed import speed_outputs

    result = measure(request, run_speed)
    deliver(request, result, speed_outputs(result, style=request.style))
