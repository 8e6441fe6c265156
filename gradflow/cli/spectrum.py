"""`gradflow spectrum`: what does each direction of the state shrink or grow by per step?"""

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
    reset_setting,
    setting,
    start_setting,
)

_CELL, _INPUT, _HOW = "What is measured", "What it is fed", "How it is measured"


def spectrum(
    context: typer.Context,
    cell: Annotated[
        Text,
        setting(
            "The cell: lstm, gru, rnn, or your own as file.py:make_cell.",
            default="lstm",
            panel=_CELL,
            names=("lstm", "gru", "rnn"),
        ),
    ] = None,
    checkpoint: Annotated[
        Text,
        setting(
            "A file of weights, whose layer is the cell: .pt .pth .ckpt .tar .safetensors .npz.",
            default="none",
            panel=_CELL,
        ),
    ] = None,
    layer: Annotated[
        Text,
        setting(
            "Which layer of the file, such as encoder.rnn.l0_reverse.",
            default="the only one",
            panel=_CELL,
        ),
    ] = None,
    gain: Annotated[
        Text,
        setting(
            "Gain g of a built-in cell: recurrent weights are normal, of deviation g/sqrt(hidden).",
            default="1",
            panel=_CELL,
        ),
    ] = None,
    hidden: Annotated[Text, setting("Hidden units.", default="64", panel=_CELL)] = None,
    reset: Annotated[Text, reset_setting(_CELL)] = None,
    networks: Annotated[
        Text, setting("Networks (draws of the weights) to average.", default="1", panel=_CELL)
    ] = None,
    input: Annotated[
        Text,
        setting(
            "The input: zero, or random (normal) numbers.",
            default="zero",
            panel=_INPUT,
            names=("zero", "random"),
        ),
    ] = None,
    data: Annotated[
        Text,
        setting(
            "A given input: .npy, .npz (time, input) or (time, batch, input), or .csv.",
            default="none",
            panel=_INPUT,
        ),
    ] = None,
    input_size: Annotated[
        Text, setting("Input width, where there is no data.", default="1", panel=_INPUT)
    ] = None,
    start: Annotated[Text, start_setting(_INPUT)] = None,
    count: Annotated[
        Text, setting("How many exponents, the largest first.", default="all", panel=_HOW)
    ] = None,
    steps: Annotated[
        Text,
        setting("Steps that are measured.", default="2000, or all of the data", panel=_HOW),
    ] = None,
    warmup: Annotated[Text, setting("Steps before those.", default="500", panel=_HOW)] = None,
    trajectories: Annotated[
        Text, setting("Trajectories of each network to average.", default="1", panel=_HOW)
    ] = None,
    dtype: Annotated[
        Text,
        setting(
            "float64 or float32 states; exponents are computed in float64.",
            default="float64",
            panel=_HOW,
            names=("float64", "float32"),
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
    """What does each direction of the state shrink or grow by per step?

    Measures the Lyapunov exponents of a cell along its run, in nats per step,
    with standard errors, their sum and the Kaplan-Yorke dimension. Directions
    that the cell's structure leaves nothing of are told apart from small numbers.
    """
    request = read_request(context, "spectrum")
    from gradflow.experiments.spectrum import run_spectrum
    from gradflow.present.spectrum import spectrum_outputs

    result = measure(request, run_spectrum)
    deliver(request, result, spectrum_outputs(result, style=request.style))
