"""`gradflow benchmark`: which cell learns to carry information across a delay, at what cost?"""

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
    TextList,
    setting,
)
from gradflow.cli.sweeps import (
    DryRun,
    Executor,
    RetryFailed,
    Workers,
    read_sweep,
    show_plan,
    sweeping,
)

_TASK, _MODELS, _TRAINING = "The task", "The models", "The training, the same for all"


def benchmark(
    context: typer.Context,
    task: Annotated[
        Text,
        setting(
            "copy (symbols, blanks, recall), signal (the first token decides), or adding.",
            default="copy",
            panel=_TASK,
            names=("copy", "signal", "adding"),
        ),
    ] = None,
    delay: Annotated[
        TextList, setting("Delays T, in steps.", default="1,10,50", panel=_TASK)
    ] = None,
    symbols: Annotated[Text, setting("copy: symbols N.", default="5", panel=_TASK)] = None,
    alphabet: Annotated[Text, setting("copy: of how many, K.", default="8", panel=_TASK)] = None,
    distractors: Annotated[
        Text, setting("signal: distractor tokens.", default="5", panel=_TASK)
    ] = None,
    train_size: Annotated[
        Text, setting("Training sequences.", default="20000", panel=_TASK)
    ] = None,
    validation_size: Annotated[
        Text, setting("Validation sequences.", default="1000", panel=_TASK)
    ] = None,
    test_size: Annotated[Text, setting("Test sequences.", default="2000", panel=_TASK)] = None,
    overlap: Annotated[
        Text,
        setting(
            "Whether sets may share sequences where a task has too few: never, or "
            "where-unavoidable.",
            default="never",
            panel=_TASK,
            names=("never", "where-unavoidable"),
        ),
    ] = None,
    cell: Annotated[
        TextList,
        setting(
            "Cells: rnn, gru, lstm, or your own as file.py:make_cell.",
            default="rnn,gru,lstm",
            panel=_MODELS,
            names=("rnn", "gru", "lstm"),
        ),
    ] = None,
    init: Annotated[
        TextList,
        setting(
            "Initializations, as gradflow inits takes them: forget-bias:2, chrono:50.",
            default="torch-default",
            panel=_MODELS,
        ),
    ] = None,
    hidden: Annotated[
        Text, setting("The width that all cells have in one table.", default="64", panel=_MODELS)
    ] = None,
    match: Annotated[
        Text,
        setting(
            "What widths are matched to in the other: lstm:64, or a number of parameters.",
            default="the cell with most at --hidden",
            panel=_MODELS,
        ),
    ] = None,
    encoding: Annotated[
        Text,
        setting(
            "Tokens enter by embedding or one-hot.",
            default="embedding",
            panel=_MODELS,
            names=("embedding", "one-hot"),
        ),
    ] = None,
    embedding: Annotated[
        Text, setting("Width of an embedding.", default="16", panel=_MODELS)
    ] = None,
    learning_rate: Annotated[
        TextList,
        setting("Grid of learning rates.", default="0.001,0.003,0.01", panel=_TRAINING),
    ] = None,
    seeds: Annotated[Text, setting("Seeds of every model.", default="3", panel=_TRAINING)] = None,
    optimizer: Annotated[
        Text,
        setting(
            "adam, rmsprop or sgd.",
            default="adam",
            panel=_TRAINING,
            names=("adam", "rmsprop", "sgd"),
        ),
    ] = None,
    clip: Annotated[
        Text, setting("Gradient norm to clip to, 0 for none.", default="1", panel=_TRAINING)
    ] = None,
    batch: Annotated[
        Text, setting("Sequences of an update.", default="64", panel=_TRAINING)
    ] = None,
    updates: Annotated[Text, setting("Updates at most.", default="2000", panel=_TRAINING)] = None,
    evaluate_every: Annotated[
        Text, setting("Updates between two validations.", default="50", panel=_TRAINING)
    ] = None,
    patience: Annotated[
        Text,
        setting(
            "Updates without a better validation that end it.", default="1000", panel=_TRAINING
        ),
    ] = None,
    executor: Executor = None,
    workers: Workers = None,
    dry_run: DryRun = False,
    retry_failed: RetryFailed = False,
    seed: Seed = None,
    config: Config = None,
    out: Out = None,
    format: Format = None,
    style: Style = None,
    quiet: Quiet = False,
    debug: Debug = False,
    force: Force = False,
) -> None:
    """Which recurrent cell learns to carry information across a delay, at what cost?

    Trains every cell, delay, learning rate and seed, at the same width and at the
    same number of parameters, beside what a model without memory reaches. Every
    run is stored as it ends: the same command goes on where it was stopped.
    """
    how = read_sweep(context)
    request = read_request(context, "benchmark")
    from gradflow.experiments.benchmark import plan_benchmark, run_benchmark
    from gradflow.present.benchmark import benchmark_outputs

    if how.dry_run:
        show_plan(request, plan_benchmark, how)
    result = measure(request, sweeping(run_benchmark, request, how))
    deliver(request, result, benchmark_outputs(result, style=request.style))
