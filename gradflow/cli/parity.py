"""`gradflow parity`: do two cells compute the same, forward and backward?"""

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
    Text,
    one_of,
    setting,
    with_default,
)

_NAMES = (
    *("lstm", "gru", "gru-before", "rnn", "rnn-relu"),
    *("torch.LSTMCell", "torch.GRUCell", "torch.RNNCell", "torch.LSTM", "torch.GRU", "torch.RNN"),
    *("numpy.lstm", "numpy.gru", "numpy.gru-before", "numpy.rnn"),
)
_WEIGHTS, _RUN = "The weights", "The run"


def parity(
    context: typer.Context,
    a: Annotated[
        Text,
        typer.Argument(
            metavar="A",
            help=with_default(
                "A name (gru, torch.LSTM, numpy.lstm), file.py:name (a module, a function that "
                "makes one, or a step function), or a file of weights.",
                "gru",
            ),
            show_default=False,
            autocompletion=one_of(*_NAMES),
        ),
    ] = None,
    b: Annotated[
        Text,
        typer.Argument(
            metavar="B",
            help=with_default(
                "The other side, likewise; also a file with a recording (x, y).",
                "torch's cell of A's kind",
            ),
            show_default=False,
            autocompletion=one_of(*_NAMES),
        ),
    ] = None,
    weights: Annotated[
        Text,
        setting(
            "random for both, own for each side's, or a file for both.",
            default="a file's where a side is one, else random",
            panel=_WEIGHTS,
            names=("random", "own"),
        ),
    ] = None,
    weight_map: Annotated[
        Text,
        setting(
            "How B's weights come from A's: a TOML or JSON file, or file.py:function.",
            default="by names, shapes and probing",
            panel=_WEIGHTS,
        ),
    ] = None,
    gate_order: Annotated[
        Text,
        setting(
            "Order of the gates in B's stacked weights.", default="i,f,g,o or r,z,n", panel=_WEIGHTS
        ),
    ] = None,
    bias: Annotated[
        Text,
        setting(
            "Drawn biases: random or zero.",
            default="random",
            panel=_WEIGHTS,
            names=("random", "zero"),
        ),
    ] = None,
    data: Annotated[
        Text, setting("A file with inputs x and a first state h, c.", default="drawn", panel=_RUN)
    ] = None,
    input_size: Annotated[
        Text, setting("Input width.", default="the sides' own, else 3", panel=_RUN)
    ] = None,
    hidden: Annotated[
        Text, setting("Hidden units.", default="the sides' own, else 5", panel=_RUN)
    ] = None,
    steps: Annotated[Text, setting("Time steps.", default="5", panel=_RUN)] = None,
    batch: Annotated[Text, setting("Rows, all different.", default="3", panel=_RUN)] = None,
    start: Annotated[
        Text,
        setting(
            "State before step 1: random or zero.",
            default="random",
            panel=_RUN,
            names=("random", "zero"),
        ),
    ] = None,
    tolerance: Annotated[
        Text, setting("Largest error that counts as equal.", default="1e-10", panel=_RUN)
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
    """Do two cells compute the same, forward and backward?

    Puts the same weights into both, runs them from a random state, and compares
    states, gates and the gradient by everything, in float64. Where they differ,
    it names the step, the gate and the known variant that explains it.
    """
    request = read_request(context, "parity")
    from gradflow.experiments.parity import run_parity
    from gradflow.present.parity import parity_outputs

    result = measure(request, run_parity)
    deliver(request, result, parity_outputs(result, style=request.style))
