"""Sequences, losses and memoryless baselines of the benchmark's tasks."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gradflow.errors import SettingError
from gradflow.experiments.benchmark.adding_task import NEAR, AddingTask
from gradflow.experiments.benchmark.copy_task import CopyTask
from gradflow.experiments.benchmark.made_task import make_task
from gradflow.experiments.benchmark.signal_task import SignalTask
from gradflow.experiments.benchmark.verdicts import at_baseline, verdict
from gradflow.records.benchmark import LEARNED, NOT_LEARNED, PARTLY
from tests.field_cases import field_case

CASE = field_case("copy_task_baseline")


def generator(seed: int = 0) -> torch.Generator:
    """Return a seeded source of numbers."""
    return torch.Generator().manual_seed(seed)


# the copy task


def test_a_copy_is_symbols_blanks_cue_and_recall():
    """N symbols, T - 1 blanks (token K), the cue (K + 1), N blanks; blank is the answer before."""
    made = CopyTask(delay=4, symbols=2, alphabet=3).sequences(torch.tensor([[0, 2], [1, 1]]))
    assert made.inputs.mT.tolist() == [[0, 2, 3, 3, 3, 4, 3, 3], [1, 1, 3, 3, 3, 4, 3, 3]]
    assert made.targets.mT.tolist() == [[3, 3, 3, 3, 3, 3, 0, 2], [3, 3, 3, 3, 3, 3, 1, 1]]


@pytest.mark.parametrize("delay", CASE.expected["per_delay"])
def test_the_baseline_is_that_of_the_field_case(delay: str):
    """N ln K / (T + 2N) over all steps, ln K on recall, 1/K right: 0.297 at T=50, 0.0945 at 200."""
    expected = CASE.expected["per_delay"][delay]
    task = CopyTask(delay=int(delay), symbols=10, alphabet=8)
    assert task.steps == expected["sequence_length"]
    assert task.baseline.loss == pytest.approx(expected["memoryless_ce_all_steps"], CASE.tolerance)
    recall = expected["memoryless_ce_recall_steps_only"]
    assert task.baseline.recall_loss == pytest.approx(recall, CASE.tolerance)
    assert task.baseline.accuracy == expected["memoryless_accuracy_recall_steps_only"]


@pytest.mark.parametrize("delay", CASE.expected["per_delay"])
def test_the_losses_of_the_field_case_say_that_nothing_was_learned(delay: str):
    """0.30 at T=50 and 0.09 at T=200 are both the baseline: the lower one has more blanks."""
    task = CopyTask(delay=int(delay), symbols=10, alphabet=8)
    assert at_baseline(CASE.expected["per_delay"][delay]["observed"], task.baseline.loss)
    assert CASE.expected["verdict"] == NOT_LEARNED


def test_a_model_without_memory_reaches_the_baseline_and_no_less():
    """Log probabilities that know the time alone, through the task's own loss."""
    task = CopyTask(delay=5, symbols=3, alphabet=4)
    data = task.sequences(task.draw(4000, generator()))
    answers = torch.full((task.steps, 1, task.outputs), -60.0)
    answers[: -task.symbols, :, task.alphabet] = 0.0
    answers[-task.symbols :, :, : task.alphabet] = 0.0
    answers = answers.expand(-1, len(data), -1)
    assert float(task.loss(answers, data.targets)) == pytest.approx(task.baseline.loss, rel=1e-5)
    recall = float(task.recall_loss(answers, data.targets))
    assert recall == pytest.approx(task.baseline.recall_loss, rel=1e-5)
    assert task.accuracy(answers, data.targets) == pytest.approx(0.25, abs=0.02)


def test_a_perfect_copy_scores_one():
    """Each symbol at its place; two symbols swapped are wrong."""
    task = CopyTask(delay=2, symbols=2, alphabet=3)
    data = task.sequences(torch.tensor([[0, 2]]))
    right = torch.nn.functional.one_hot(data.targets, task.outputs).double()
    assert task.accuracy(right, data.targets) == 1.0
    assert task.accuracy(right.flip(0), data.targets) == 0.0


# the signal task


def test_the_first_token_is_the_label_and_distractors_are_other_tokens():
    """Two signal tokens, 0 and 1, at the first step alone."""
    task = SignalTask(delay=7, distractors=3)
    data = task.sequences(task.draw(50, generator()))
    assert torch.equal(data.inputs[0], data.targets)
    assert data.inputs.shape == (7, 50)
    assert data.inputs[1:].min() == 2
    assert data.inputs[1:].max() == 4


def test_a_coin_has_ln_2_and_one_half():
    """Equal logits, through the task's own loss."""
    task = SignalTask(delay=3, distractors=2)
    data = task.sequences(task.draw(100, generator()))
    loss = float(task.loss(torch.zeros(1, 100, 2), data.targets))
    assert loss == pytest.approx(task.baseline.loss, rel=1e-6)
    assert (task.baseline.loss, task.baseline.accuracy) == (math.log(2), 0.5)


# the adding task


@pytest.mark.parametrize("delay", [2, 3, 10])
def test_two_numbers_are_marked_one_in_each_half_and_their_sum_is_asked(delay: int):
    """Number and mark at each step."""
    task = AddingTask(delay=delay)
    data = task.sequences(task.draw(64, generator()))
    numbers, marks = data.inputs[..., 0], data.inputs[..., 1]
    assert marks[: delay // 2].sum(dim=0).tolist() == [1.0] * 64
    assert marks[delay // 2 :].sum(dim=0).tolist() == [1.0] * 64
    torch.testing.assert_close((numbers * marks).sum(dim=0), data.targets)


def test_always_one_has_a_mean_squared_error_of_one_sixth():
    """The variance of a sum of two uniform numbers, 2/12, and its share of near answers."""
    task = AddingTask(delay=4)
    data = task.sequences(task.draw(200_000, generator()))
    answers = torch.ones(1, 200_000, 1)
    assert float(task.loss(answers, data.targets)) == pytest.approx(1 / 6, rel=0.01)
    assert task.baseline.loss == 1 / 6
    near = np.mean(np.abs(data.targets.numpy() - 1.0) < NEAR)
    assert task.baseline.accuracy == pytest.approx(near, abs=0.005)
    assert task.accuracy(answers, data.targets) == pytest.approx(near, abs=1e-6)


def test_two_marks_need_two_steps():
    """At T=1 there is one number; the message says what the delay is."""
    with pytest.raises(SettingError, match="at least 2; got 1"):
        make_task({"task": "adding"}, 1)


# counting, verdicts


def test_the_numbered_rows_are_all_rows_once():
    """Counted through, each different sequence comes once."""
    task = SignalTask(delay=3, distractors=3)
    assert task.different == 18
    rows = task.numbered(torch.arange(18))
    assert len({tuple(row) for row in rows.tolist()}) == 18
    assert rows.max(dim=0).values.tolist() == [1, 2, 2]


@pytest.mark.parametrize(
    ("accuracy", "recall_loss", "expected"),
    [(0.9, 0.3, LEARNED), (0.89, 0.3, PARTLY), (0.13, 2.07, NOT_LEARNED), (0.2, 2.5, NOT_LEARNED)],
)
def test_learned_is_an_accuracy_of_nine_tenths(accuracy: float, recall_loss: float, expected: str):
    """Below it a loss near the baseline's is "not learned", and one well below it "partly"."""
    baseline = CopyTask(delay=50, symbols=10, alphabet=8).baseline
    assert verdict(accuracy, recall_loss, baseline) == expected
