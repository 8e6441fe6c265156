"""`gradflow watch`: how did gradients flow while a model trained?"""

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
    setting,
)

_WHAT, _JUDGED = "What is shown", "How it is judged"


def watch(
    context: typer.Context,
    log: Annotated[
        Text,
        typer.Argument(
            metavar="LOG",
            help="The watch.jsonl that gradflow.watch wrote, or its run folder.",
            show_default=False,
        ),
    ] = None,
    state: Annotated[
        Text,
        setting(
            "The state whose gradient is drawn: h or c.",
            default="h",
            panel=_WHAT,
            names=("h", "c"),
        ),
    ] = None,
    needs_lag: Annotated[
        Text,
        setting(
            "How many steps back the gradient must reach: judge again by it.",
            default="as it was judged",
            panel=_JUDGED,
        ),
    ] = None,
    fail_on: Annotated[
        Text,
        setting(
            "What fails the command: warning, error or never.",
            default="never",
            panel=_JUDGED,
            names=("warning", "error", "never"),
        ),
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
    """How did gradients flow while a model trained?

    Shows a log of `gradflow.watch`: each layer's gradient through time over
    the training, where its memory horizon changed, and what was found when.
    A log that is still being written is shown as far as it is.
    """
    request = read_request(context, "watch")
    from gradflow.present.watch import watch_outputs
    from gradflow.watching.recorded import run_watch

    result = measure(request, run_watch)
    deliver(request, result, watch_outputs(result, style=request.style))
