"""Training one network: the same rule of updates, clipping, validation and stopping for all."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from gradflow.experiments.benchmark.networks import Network
from gradflow.experiments.benchmark.tasks import Sequences, SequenceTask

SOLVED = 0.999
"""The validation accuracy at which training stops when it is reached twice in a row."""
RUNAWAY = 10.0
"""How many times the baseline's or the first loss a validation loss may be before it diverged."""

Weights = dict[str, Tensor]
_OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "rmsprop": torch.optim.RMSprop,
    "sgd": torch.optim.SGD,
}
_KEPT = 16  # weights of validations, beside the best and the last
_AT_ONCE = 500  # sequences that are evaluated together


@dataclass(frozen=True)
class TrainingRule:
    """What all models share: the optimizer, its rate, clipping, and when training ends."""

    optimizer: str
    learning_rate: float
    clip: float
    updates: int
    evaluate_every: int
    patience: int


@dataclass(frozen=True)
class Score:
    """How well a network does on a set."""

    loss: float
    recall_loss: float
    accuracy: float


@dataclass(frozen=True)
class Validation:
    """A look at the validation set after so many updates; `train_loss` is the mean since then."""

    update: int
    score: Score
    train_loss: float | None


@dataclass
class Training:
    """What a training went through.

    `best` is the index of the best validation; `weights` has those of the best, the first and the
    last validation and of a few, evenly spaced, between, by index.
    """

    validations: list[Validation] = field(default_factory=list)
    weights: dict[int, Weights] = field(default_factory=dict)
    gradient_norms: list[float] = field(default_factory=list)
    best: int = 0
    stopped: str = ""
    reason: str | None = None
    updates: int = 0
    step_calls: int = 0
    seconds: float = 0.0

    @property
    def diverged(self) -> bool:
        """True where a loss or gradient left the finite or the reasonable numbers."""
        return self.stopped == "diverged"


def make_optimizer(network: nn.Module, rule: TrainingRule) -> torch.optim.Optimizer:
    """Return the optimizer of the rule over all parameters."""
    return _OPTIMIZERS[rule.optimizer](network.parameters(), lr=rule.learning_rate)


def train(
    network: Network,
    task: SequenceTask,
    batches: Iterator[Sequences],
    validation: Sequences,
    rule: TrainingRule,
) -> Training:
    """Train until the last update, or until nothing gets better, all is right, or it diverges.

    Returns:
        What happened. The network keeps its last weights; of a diverged one the last that were
        validated are in `weights`.
    """
    training = Training()
    optimizer = make_optimizer(network, rule)
    _validate(training, network, task, validation, losses=[])
    while not training.stopped:
        losses: list[float] = []
        todo = min(rule.evaluate_every, rule.updates - training.updates)
        for _ in range(todo):
            losses.append(_timed_update(training, network, task, next(batches), optimizer, rule))
            if training.diverged:
                return training
        _validate(training, network, task, validation, losses)
        _judge(training, rule)
    return training


def update(
    network: Network,
    task: SequenceTask,
    batch: Sequences,
    optimizer: torch.optim.Optimizer,
    clip: float,
) -> tuple[float, float]:
    """Make one update; return the batch's loss and the gradient's norm before clipping.

    A gradient that is not finite is not applied.
    """
    optimizer.zero_grad()
    loss = task.loss(network(batch.inputs), batch.targets)
    loss.backward()
    norm = float(nn.utils.clip_grad_norm_(network.parameters(), clip or math.inf))
    if math.isfinite(norm):
        optimizer.step()
    return float(loss.detach()), norm


@torch.no_grad()
def evaluate(network: Network, task: SequenceTask, sequences: Sequences) -> Score:
    """Return the score over all sequences, in evaluation mode."""
    was_training = network.training
    network.eval()
    sums = [0.0, 0.0, 0.0]
    for rows in torch.arange(len(sequences)).split(_AT_ONCE):
        part = sequences.at(rows)
        answers = network(part.inputs)
        found = (task.loss(answers, part.targets), task.recall_loss(answers, part.targets))
        values = (*map(float, found), task.accuracy(answers, part.targets))
        sums = [total + len(rows) * value for total, value in zip(sums, values, strict=True)]
    network.train(was_training)
    return Score(*(total / len(sequences) for total in sums))


def _timed_update(
    training: Training,
    network: Network,
    task: SequenceTask,
    batch: Sequences,
    optimizer: torch.optim.Optimizer,
    rule: TrainingRule,
) -> float:
    started = time.perf_counter()
    loss, norm = update(network, task, batch, optimizer, rule.clip)
    training.seconds += time.perf_counter() - started
    training.updates += 1
    training.step_calls += batch.inputs.shape[0]
    if math.isfinite(loss) and math.isfinite(norm):
        training.gradient_norms.append(norm)
    else:
        what = "loss" if not math.isfinite(loss) else "gradient"
        _diverge(training, f"the {what} was no longer finite at update {training.updates}")
    return loss


def _validate(
    training: Training,
    network: Network,
    task: SequenceTask,
    validation: Sequences,
    losses: list[float],
) -> None:
    score = evaluate(network, task, validation)
    mean = sum(losses) / len(losses) if losses else None
    first = training.validations[0].score.loss if training.validations else 0.0
    if not math.isfinite(score.loss):
        _diverge(training, f"the validation loss was not finite after update {training.updates}")
        return
    training.validations.append(Validation(training.updates, score, mean))
    limit = RUNAWAY * max(task.baseline.loss, first)
    if training.updates and score.loss > limit:
        _diverge(
            training,
            f"the validation loss was {score.loss:.3g} after update {training.updates}, more than "
            f"{RUNAWAY:g} times the larger of the baseline's and its first",
        )
    if score.loss < training.validations[training.best].score.loss:
        training.best = len(training.validations) - 1
    _keep(training, _copied(network))


def _keep(training: Training, weights: Weights) -> None:
    """Keep these weights, and of those before the best and a few, evenly spaced."""
    last = len(training.validations) - 1
    stride = 1 << (last // _KEPT).bit_length()
    kept = {
        index: old
        for index, old in training.weights.items()
        if index % stride == 0 or index == training.best
    }
    training.weights = {**kept, last: weights}


def _judge(training: Training, rule: TrainingRule) -> None:
    """End the training where there is a reason to."""
    if training.stopped:
        return
    best = training.validations[training.best]
    last_two = [entry.score.accuracy for entry in training.validations[-2:]]
    if training.updates >= rule.updates:
        training.stopped = "updates"
    elif len(last_two) == 2 and min(last_two) >= SOLVED:
        training.stopped = "solved"
    elif training.updates - best.update >= rule.patience:
        training.stopped = "patience"


def _diverge(training: Training, reason: str) -> None:
    training.stopped, training.reason = "diverged", reason


def _copied(network: Network) -> dict[str, Any]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}
