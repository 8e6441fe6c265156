"""The rule of training that all models share, and what it says of how a training went."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch

from gradflow.experiments.benchmark.datasets import batches, draw_sets
from gradflow.experiments.benchmark.networks import Network, make_network
from gradflow.experiments.benchmark.signal_task import SignalTask
from gradflow.experiments.benchmark.training import (
    Training,
    TrainingRule,
    evaluate,
    train,
    update,
)

TASK = SignalTask(delay=8, distractors=3)
SETS = draw_sets(TASK, (256, 64, 64), seed=0)


def network(seed: int = 0, cell: str = "lstm", init: str = "torch-default") -> Network:
    """Return a small network."""
    return make_network(TASK, cell=cell, hidden=8, embedding=4, init=init, seed=seed)


def rule(**values: Any) -> TrainingRule:
    """Return a rule of few updates."""
    usual = {"optimizer": "adam", "learning_rate": 0.01, "clip": 1.0, "updates": 40}
    return TrainingRule(**{**usual, "evaluate_every": 10, "patience": 1000, **values})


def trained(model: Network, seed: int = 0, **values: Any) -> Training:
    """Train a network by a rule."""
    return train(model, TASK, batches(SETS.train, 16, seed), SETS.validation, rule(**values))


def test_training_is_the_plain_loop_of_torch():
    """Zero, loss, backward, clip, step, written out here: the same weights in the last bit."""
    ours, theirs = network(), network()
    trained(ours, updates=7, evaluate_every=5)
    optimizer = torch.optim.Adam(theirs.parameters(), lr=0.01)
    endless = batches(SETS.train, 16, 0)
    for _ in range(7):
        batch = next(endless)
        optimizer.zero_grad()
        output, _ = theirs.layer(theirs.encoder(batch.inputs))
        torch.nn.functional.cross_entropy(theirs.head(output[-1]), batch.targets).backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        optimizer.step()
    pairs = zip(ours.state_dict().values(), theirs.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("clip", [0.0, 1e-3])
def test_the_gradient_norm_is_the_one_before_clipping(clip: float):
    """The root of the sum of all squares, taken here from a backward pass of its own."""
    model, twin = network(), network()
    batch = next(batches(SETS.train, 16, 0))
    TASK.loss(twin(batch.inputs), batch.targets).backward()
    squares = sum(float(p.grad.double().square().sum()) for p in twin.parameters())
    _, norm = update(model, TASK, batch, torch.optim.SGD(model.parameters(), lr=1.0), clip)
    assert norm == pytest.approx(math.sqrt(squares), rel=1e-5)
    with torch.no_grad():
        moved = [a - b for a, b in zip(model.parameters(), network().parameters(), strict=True)]
    step = math.sqrt(sum(float(change.double().square().sum()) for change in moved))
    assert step == pytest.approx(clip or norm, rel=1e-3)


def test_updates_calls_and_looks_are_counted():
    """25 updates of 8 steps, looked at after 0, 10, 20 and 25."""
    training = trained(network(), updates=25)
    assert (training.stopped, training.updates, training.step_calls) == ("updates", 25, 25 * 8)
    assert [entry.update for entry in training.validations] == [0, 10, 20, 25]
    assert len(training.gradient_norms) == 25
    assert training.seconds > 0.0


def test_training_without_progress_stops():
    """At a rate of nearly nothing the loss stays; the best is then as old as the patience."""
    training = trained(network(), learning_rate=1e-12, patience=30, updates=1000)
    assert training.stopped == "patience"
    best = training.validations[training.best]
    assert 30 <= training.updates - best.update <= 30 + 10


def test_a_task_that_is_solved_stops():
    """Two looks in a row with every answer right."""
    training = trained(network(init="forget-bias:2"), learning_rate=0.02, updates=2000)
    assert training.stopped == "solved"
    assert [entry.score.accuracy for entry in training.validations[-2:]] == [1.0, 1.0]


def test_a_loss_that_explodes_is_told_and_the_rest_is_kept():
    """A rate of 1e4 by plain gradient descent: diverged, with the reason and the first weights."""
    training = trained(network(cell="rnn"), optimizer="sgd", learning_rate=1e4, clip=0.0)
    assert training.diverged
    assert training.reason is not None
    assert "validation loss was" in training.reason
    assert training.validations[0].update == 0


def test_a_gradient_that_is_not_finite_is_not_applied():
    """Steps of 1e38 make a loss without a number: training ends, and no weight becomes nan."""
    model = network()
    training = trained(model, optimizer="sgd", learning_rate=1e38, clip=0.0)
    assert training.diverged
    assert training.reason == f"the loss was no longer finite at update {training.updates}"
    assert 1 < training.updates < 10
    assert all(bool(torch.isfinite(parameter).all()) for parameter in model.parameters())


def test_a_network_that_begins_without_a_number_is_told():
    """Before any update there is nothing to go back to."""
    model = network()
    with torch.no_grad():
        model.head.bias.fill_(torch.nan)
    training = trained(model)
    assert training.reason == "the validation loss was not finite after update 0"
    assert (training.updates, training.validations) == (0, [])


def test_the_best_weights_are_those_of_the_lowest_validation_loss():
    """Loaded again, they have that loss; the network itself goes on to the last."""
    model = network(init="forget-bias:2")
    training = trained(model, learning_rate=0.05, updates=60)
    losses = [entry.score.loss for entry in training.validations]
    assert training.best == losses.index(min(losses))
    again = network(init="forget-bias:2")
    again.load_state_dict(training.weights[training.best])
    assert evaluate(again, TASK, SETS.validation).loss == pytest.approx(min(losses), rel=1e-6)


def test_few_weights_are_kept_however_long_it_takes():
    """Of 151 looks the first, the best, the last and at most 16 between, evenly spaced."""
    training = trained(network(), updates=150, evaluate_every=1, learning_rate=1e-4)
    assert len(training.validations) == 151
    kept = sorted(training.weights)
    assert {0, training.best, 150} <= set(kept)
    assert len(kept) <= 16 + 3
    assert min(abs(index - 75) for index in kept) <= 5


def test_a_score_over_parts_is_the_score_over_all():
    """More sequences than are evaluated at once."""
    model = network()
    data = TASK.sequences(TASK.draw(1203, torch.Generator().manual_seed(0)))
    with torch.no_grad():
        answers = copy.deepcopy(model)(data.inputs)
    score = evaluate(model, TASK, data)
    assert score.loss == pytest.approx(float(TASK.loss(answers, data.targets)), rel=1e-5)
    assert score.accuracy == pytest.approx(TASK.accuracy(answers, data.targets), abs=1e-9)
