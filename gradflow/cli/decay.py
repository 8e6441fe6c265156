"""`gradflow decay`: how fast does ds_T/ds_0 fade when the gates are held?"""

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
    dtype_setting,
    norm_setting,
    reset_setting,
    setting,
    start_setting,
    state_setting,
)

_CELLS, _HELD, _HOW = "What is measured", "How the gates are held", "How it is measured"


def decay(
    context: typer.Context,
    cell: Annotated[
        TextList,
        setting(
            "Cells: lstm, gru, rnn, or your own as file.py:make_cell.",
            default="lstm,gru",
            panel=_CELLS,
            names=("lstm", "gru", "rnn"),
        ),
    ] = None,
    gate: Annotated[
        TextList,
        setting(
            "Values of the keep gate (LSTM forget, GRU update; for an RNN the recurrent gain).",
            default="0.1,0.5,0.9",
            panel=_CELLS,
        ),
    ] = None,
    steps: Annotated[Text, setting("Time steps T.", default="100", panel=_CELLS)] = None,
    hidden: Annotated[Text, setting("Hidden units.", default="64", panel=_CELLS)] = None,
    state: Annotated[Text, state_setting(_CELLS)] = None,
    input_gate: Annotated[
        Text,
        setting(
            "LSTM input gate: a value, or coupled for 1 - forget gate.",
            default="coupled",
            panel=_HELD,
            names=("coupled",),
        ),
    ] = None,
    output_gate: Annotated[Text, setting("LSTM output gate.", default="0.5", panel=_HELD)] = None,
    reset_gate: Annotated[Text, setting("GRU reset gate.", default="0.5", panel=_HELD)] = None,
    reset: Annotated[Text, reset_setting(_HELD)] = None,
    candidate_gain: Annotated[
        TextList,
        setting(
            "Gains of the candidate's orthogonal recurrent matrix; 0 turns it off.",
            default="0,1",
            panel=_HELD,
        ),
    ] = None,
    gate_weights: Annotated[
        Text,
        setting(
            "Scale of random weights for the held gates; 0 holds them exactly.",
            default="0",
            panel=_HELD,
        ),
    ] = None,
    norm: Annotated[Text, norm_setting(_HOW)] = None,
    method: Annotated[
        Text,
        setting(
            "The way: dense steps, jump leaps where the state came back, krylov estimates wide "
            "cells by vectors, generic uses torch.func, diagonal needs units that are apart.",
            default="auto",
            panel=_HOW,
            names=("auto", "dense", "diagonal", "generic", "jump", "krylov"),
        ),
    ] = None,
    start: Annotated[Text, start_setting(_HOW)] = None,
    paths: Annotated[
        Switch,
        typer.Option(
            "--paths/--no-paths",
            help="Measure where the gradient travels too: through the keep gate, or around it.",
            show_default="no-paths",
            rich_help_panel=_HOW,
        ),
    ] = None,
    points: Annotated[
        Text,
        setting(
            "Report this many log-spaced steps.",
            default="all up to 10,000 steps, 8 by krylov",
            panel=_HOW,
        ),
    ] = None,
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
    """How fast does the state's influence fade when the keep gate is held?

    Measures ||ds_T/ds_0|| at every T beside the trend f^T (LSTM) and z^T (GRU),
    with the candidate off (gain 0) and live (gain 1), by the exact Jacobian and
    along the direct path.
    """
    request = read_request(context, "decay")
    from gradflow.experiments.decay import run_decay
    from gradflow.present.decay import decay_outputs

    result = measure(request, run_decay)
    deliver(request, result, decay_outputs(result, style=request.style))
