"""`gradflow inspect`: gradient flow of a model of the user's own."""

from __future__ import annotations

from typing import Annotated

import typer

from gradflow.cli.common import deliver, measure, read_request
from gradflow.cli.options import (
    FORMATS,
    Config,
    Debug,
    Device,
    Force,
    Out,
    Quiet,
    Seed,
    Style,
    Switch,
    Text,
    TextList,
    one_of,
    setting,
    with_default,
)

_MORE = ("github", "junit")
InspectFormat = Annotated[
    Text,
    typer.Option(
        metavar="NAME",
        help=with_default("table, json, csv, github (annotations) or junit (XML).", "table"),
        envvar="GRADFLOW_FORMAT",
        autocompletion=one_of(*FORMATS, *_MORE),
        rich_help_panel="How it runs and is shown",
    ),
]
_WHAT, _DATA, _JUDGED = "What is looked at", "What it is run on", "How it is judged"


def inspect(
    context: typer.Context,
    file: Annotated[
        Text,
        typer.Argument(
            metavar="FILE",
            help="A file of weights: .pt .pth .ckpt .tar .safetensors .npz. Nothing in it is run.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        Text, setting("Your module, as file.py:make_model.", default="none", panel=_WHAT)
    ] = None,
    checkpoint: Annotated[
        Text, setting("The weights for --model.", default="its own", panel=_WHAT)
    ] = None,
    nonlinearity: Annotated[
        Text,
        setting(
            "What a file's plain RNNs squash by.",
            default="tanh",
            panel=_WHAT,
            names=("tanh", "relu"),
        ),
    ] = None,
    data: Annotated[
        Text,
        setting(
            "Data: .npz .npy .pt, a .csv series, or file.py:make_batch.",
            default="zero and unit random input",
            panel=_DATA,
        ),
    ] = None,
    window: Annotated[
        Text, setting("Steps of one sample of a series.", default="none", panel=_DATA)
    ] = None,
    target: Annotated[
        Text, setting("Column of a series that is predicted.", default="none", panel=_DATA)
    ] = None,
    loss: Annotated[
        Text,
        setting(
            "The loss: mse or cross_entropy.",
            default="by the targets",
            panel=_DATA,
            names=("mse", "cross_entropy"),
        ),
    ] = None,
    layout: Annotated[
        Text,
        setting(
            "Which axis of the data comes first.",
            default="by lengths, targets or answer",
            panel=_DATA,
            names=("batch_first", "time_first"),
        ),
    ] = None,
    steps: Annotated[Text, setting("Steps without data.", default="100", panel=_DATA)] = None,
    depth: Annotated[
        Switch,
        typer.Option(
            "--depth/--no-depth",
            help="A heat map of the loss's gradient over layers and time.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    needs_lag: Annotated[
        Text,
        setting("How many steps back the gradient must reach.", default="none", panel=_JUDGED),
    ] = None,
    fail_on: Annotated[
        Text,
        setting(
            "What fails the command: warning, error or never.",
            default="error",
            panel=_JUDGED,
            names=("warning", "error", "never"),
        ),
    ] = None,
    baseline: Annotated[
        Text,
        setting(
            "An old result.json or run folder: only what is new is a finding.",
            default="none",
            panel=_JUDGED,
        ),
    ] = None,
    select: Annotated[
        TextList, setting("Codes to look for, or their beginnings.", default="GF", panel=_JUDGED)
    ] = None,
    ignore: Annotated[
        TextList, setting("Codes to leave out.", default="none", panel=_JUDGED)
    ] = None,
    device: Device = None,
    seed: Seed = None,
    config: Config = None,
    out: Out = None,
    format: InspectFormat = None,
    style: Style = None,
    quiet: Quiet = False,
    debug: Debug = False,
    force: Force = False,
) -> None:
    """Does the gradient reach the early steps of your model, and is anything broken?

    Finds every recurrent layer, runs it step by step in float64, and measures
    memory, gates and the loss's gradient at every state. Findings have codes:
    `gradflow explain GF101`.
    """
    request = read_request(context, "inspect", _MORE)
    from gradflow.experiments.inspect.request import run_inspect
    from gradflow.present.inspect import inspect_outputs

    result = measure(request, run_inspect)
    deliver(request, result, inspect_outputs(result, style=request.style))
