"""Results of a benchmark made by hand, for what shows them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradflow.records.benchmark import (
    LEARNED,
    NOT_LEARNED,
    PARAMETERS,
    WIDTH,
    BenchmarkModel,
    BenchmarkResult,
    BenchmarkRow,
    RateRow,
    ShortRate,
    TaskFacts,
)
from gradflow.records.benchmark_runs import (
    DONE,
    BenchmarkRun,
    FlowProfile,
    LearningCurve,
    Spread,
)

Model = tuple[str, str]
USUAL: tuple[Model, ...] = (
    ("rnn", "torch-default"),
    ("gru", "torch-default"),
    ("lstm", "torch-default"),
    ("lstm", "forget-bias:2"),
)
UPDATES = np.arange(0, 501, 50)


def result(
    task: str = "copy",
    delays: Sequence[int] = (1, 10, 50),
    models: Sequence[Model] = USUAL,
    *,
    short: bool = False,
    zeros: bool = False,
) -> BenchmarkResult:
    """Return a result in which a model learns up to a delay of 10 times its place.

    Args:
        task: copy, signal or adding.
        delays: of the task.
        models: cells and initializations; all but the LSTM have two widths.
        short: whether the last model has a rate that is stable at the shortest delay alone.
        zeros: whether the gradient of the first model is exactly zero early on.
    """
    facts = tuple(_facts(task, delay) for delay in delays)
    made = tuple(model for one in models for model in _models(*one))
    runs = tuple(
        _run(model, fact, models, draw=draw, zeros=zeros)
        for fact in facts
        for model in made
        for draw in (0, 1)
    )
    rates = tuple(_rate(model, fact.delay) for fact in facts for model in made)
    name = made[-1].name
    return BenchmarkResult(
        task=task,
        tasks=facts,
        target=6578,
        models=made,
        rows=tuple(_row(model, fact, models) for fact in facts for model in made),
        rates=rates,
        short_rates=(ShortRate(*name, 0.01, delays[:1], tuple(delays[1:])),) if short else (),
        runs=runs,
        supports=("A longer delay is also more computation: 60 steps against 11.",),
        notes=("A note.",),
        config={
            "task": task,
            "symbols": 5,
            "alphabet": 8,
            "distractors": 5,
            "hidden": 32,
            "seeds": 2,
            "batch": 64,
            "updates": 500,
            "optimizer": "adam",
            "learning_rate": [0.003, 0.01],
            "clip": 1.0,
        },
    )


def _facts(task: str, delay: int) -> TaskFacts:
    recall = {"copy": np.log(8.0), "signal": np.log(2.0), "adding": 1 / 6}[task]
    steps = delay + 10 if task == "copy" else delay
    loss = 5 * recall / steps if task == "copy" else recall
    chance = {"copy": 0.125, "signal": 0.5, "adding": 0.19}[task]
    return TaskFacts(delay, steps, loss, recall, chance, 1250, 0, "ab" * 32)


def _models(cell: str, init: str) -> list[BenchmarkModel]:
    if cell == "lstm":
        return [BenchmarkModel(cell, init, 32, 6578, (WIDTH, PARAMETERS))]
    return [
        BenchmarkModel(cell, init, 32, 2000, (WIDTH,)),
        BenchmarkModel(cell, init, 60, 6570, (PARAMETERS,)),
    ]


def _learns(model: BenchmarkModel, delay: int, models: Sequence[Model]) -> bool:
    return delay <= 10 * (1 + list(models).index((model.cell, model.init)))


def _accuracy(model: BenchmarkModel, facts: TaskFacts, models: Sequence[Model]) -> Spread:
    if _learns(model, facts.delay, models):
        return Spread(0.97, 0.94, 1.0)
    return Spread(facts.accuracy, facts.accuracy - 0.02, facts.accuracy + 0.02)


def _row(model: BenchmarkModel, facts: TaskFacts, models: Sequence[Model]) -> BenchmarkRow:
    learns = _learns(model, facts.delay, models)
    loss = 0.05 if learns else facts.recall_loss
    size = {"rnn": 1.0, "gru": 3.0}.get(model.cell, 4.0)
    costs = {
        "parameters": model.parameters,
        "multiply_adds": 1000.0 * size * facts.steps,
        "training_seconds": 0.3 * size * facts.steps / 10,
        "seconds_of_512": 0.02 * size,
        "peak_bytes": 2e6 * size,
        "process_peak_bytes": 3e8,
        "step_calls": 500.0 * facts.steps,
        "updates": 500.0,
        "gradient_norm": 0.25,
    }
    return BenchmarkRow(
        cell=model.cell,
        init=model.init,
        hidden=model.hidden,
        delay=facts.delay,
        comparisons=model.comparisons,
        learning_rate=0.003,
        verdict=LEARNED if learns else NOT_LEARNED,
        accuracy=_accuracy(model, facts, models),
        loss=Spread(loss * 0.4, loss * 0.3, loss * 0.5),
        recall_loss=Spread(loss, loss * 0.9, loss * 1.1),
        learned=2 if learns else 0,
        seeds=2,
        costs={name: Spread(value, value, value) for name, value in costs.items()},
    )


def _rate(model: BenchmarkModel, delay: int) -> RateRow:
    one = Spread(0.4, 0.3, 0.5)
    return RateRow(
        cell=model.cell,
        init=model.init,
        hidden=model.hidden,
        delay=delay,
        learning_rate=0.01,
        stable=delay == 1,
        diverged=0 if delay == 1 else 1,
        failed=0,
        validation_loss=one,
        validation_accuracy=one,
        gradient_norm=one,
        largest_gradient=Spread(30.0, 10.0, 50.0),
        updates=Spread(250.0, 0.0, 500.0),
    )


def _run(
    model: BenchmarkModel, facts: TaskFacts, models: Sequence[Model], *, draw: int, zeros: bool
) -> BenchmarkRun:
    learns = _learns(model, facts.delay, models)
    fall = np.exp(-UPDATES / 100.0) if learns else np.ones(len(UPDATES))
    loss = facts.recall_loss * fall * (1.0 + 0.05 * draw)
    accuracy = 1.0 - (1.0 - facts.accuracy) * fall
    profiles = tuple(
        FlowProfile(moment, update, 0.1, 0.0, norms, norms)
        for place, (moment, update) in enumerate((("start", 0), ("middle", 250), ("end", 500)))
        for norms in (_norms(model, facts, models, place, zeros=zeros),)
    )
    return BenchmarkRun(
        key="c" * 64,
        cell=model.cell,
        init=model.init,
        hidden=model.hidden,
        delay=facts.delay,
        learning_rate=0.003,
        draw=draw,
        status=DONE,
        reason=None,
        stopped="updates",
        best_update=500,
        best_loss=float(loss[-1]),
        best_accuracy=float(accuracy[-1]),
        final_loss=float(loss[-1]),
        gradient_norms={"q05": 0.1, "median": 0.25, "q95": 0.9, "largest": 3.0},
        costs={"parameters": model.parameters, "updates": 500},
        test={"loss": 0.1, "recall_loss": 0.2, "accuracy": 0.97},
        curve=LearningCurve(UPDATES, np.where(UPDATES > 0, loss, np.nan), loss, loss, accuracy),
        profiles=profiles,
    )


def _norms(
    model: BenchmarkModel,
    facts: TaskFacts,
    models: Sequence[Model],
    place: int,
    *,
    zeros: bool,
) -> dict[str, np.ndarray]:
    number = list(models).index((model.cell, model.init))
    back = facts.steps - np.arange(1, facts.steps + 1)
    norms = -1.0 - (0.3 - 0.06 * number - 0.03 * place) * back
    if zeros and number == 0:
        norms = np.where(back > facts.steps // 2, -np.inf, norms)
    return {"h": norms, "c": norms + 0.5} if model.cell == "lstm" else {"h": norms}
