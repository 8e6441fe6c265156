"""Training, validation and test sets: one rule, no overlap, the test set once."""

from __future__ import annotations

from itertools import islice

import pytest
import torch

from gradflow.errors import SettingError
from gradflow.experiments.benchmark.adding_task import AddingTask
from gradflow.experiments.benchmark.copy_task import CopyTask
from gradflow.experiments.benchmark.datasets import batches, count_shared, draw_sets
from gradflow.experiments.benchmark.signal_task import SignalTask
from gradflow.experiments.benchmark.tasks import Sequences, SequenceTask

TASKS = {
    "copy, of many": CopyTask(delay=3, symbols=10, alphabet=8),
    "copy, all of 64": CopyTask(delay=3, symbols=2, alphabet=8),
    "copy, of 4096": CopyTask(delay=3, symbols=4, alphabet=8),
    "signal": SignalTask(delay=20, distractors=5),
    "adding": AddingTask(delay=6),
}
each_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS.keys())


def rows(sequences: Sequences) -> set[tuple[float, ...]]:
    """Return the sequences as a set, read step by step."""
    return {tuple(one.flatten().tolist()) for one in sequences.inputs.transpose(0, 1)}


@each_task
def test_no_sequence_is_in_two_sets(task: SequenceTask):
    """Told here from the inputs themselves; even where the three sets are all that there is."""
    sets = draw_sets(task, (40, 12, 12), seed=3)
    parts = [rows(sets.train), rows(sets.validation), rows(sets.test())]
    assert [len(part) for part in parts] == [40, 12, 12]
    assert len(set().union(*parts)) == 64
    assert sets.shared == 0


@each_task
def test_the_seed_alone_decides_the_sets(task: SequenceTask):
    """The same for every model; another seed, other sequences."""
    torch.manual_seed(1)
    first = draw_sets(task, (40, 12, 12), seed=3)
    torch.manual_seed(2)
    again = draw_sets(task, (40, 12, 12), seed=3)
    other = draw_sets(task, (40, 12, 12), seed=4)
    assert torch.equal(first.train.inputs, again.train.inputs)
    assert first.fingerprint == again.fingerprint != other.fingerprint


def test_the_test_set_is_looked_at_once():
    """A second look is a fault of the program, and says so."""
    sets = draw_sets(TASKS["signal"], (4, 2, 2), seed=0)
    sets.test()
    with pytest.raises(RuntimeError, match="looked at once"):
        sets.test()


def test_sets_that_would_overlap_are_refused_with_the_cure():
    """One symbol of 8 makes 8 sequences: a symbol that is held out cannot be learned."""
    task = CopyTask(delay=10, symbols=1, alphabet=8)
    with pytest.raises(SettingError, match=r"8 different sequences for 20\..*\n?.*--symbols"):
        draw_sets(task, (10, 5, 5), seed=0)


def test_the_cure_is_one_of_the_task_s_own_options():
    """A signal task has no symbols to take more of."""
    with pytest.raises(SettingError, match="a longer --delay or more --distractors") as refused:
        draw_sets(SignalTask(delay=2, distractors=3), (10, 5, 5), seed=0)
    assert "--symbols" not in str(refused.value)


def test_where_it_is_asked_for_each_set_has_all_sequences():
    """And how many are shared is told."""
    task = CopyTask(delay=10, symbols=1, alphabet=8)
    sets = draw_sets(task, (10, 5, 5), seed=0, overlap=True)
    assert [len(rows(part)) for part in (sets.train, sets.validation, sets.test())] == [8, 8, 8]
    assert sets.shared == 16


def test_shared_sequences_are_counted():
    """One of two."""
    first, second = torch.tensor([[0, 1], [2, 3]]), torch.tensor([[2, 3], [4, 5]])
    assert count_shared([first, second]) == 1
    assert count_shared([first, first, first]) == 4


def test_batches_go_through_all_sequences_before_any_comes_again():
    """10 sequences in batches of 4: the first five batches are each sequence twice."""
    task = CopyTask(delay=1, symbols=2, alphabet=4)
    data = task.sequences(task.numbered(torch.arange(10)))
    drawn = list(islice(batches(data, 4, seed=0), 5))
    assert [len(batch) for batch in drawn] == [4] * 5
    seen = torch.cat([batch.inputs[:2] for batch in drawn], dim=1).mT.tolist()
    assert sorted(map(tuple, seen)) == sorted(
        2 * [tuple(row) for row in data.inputs[:2].mT.tolist()]
    )
    assert sorted(map(tuple, seen[:8])) != sorted(map(tuple, seen[8:16]))


def test_targets_stay_with_their_inputs():
    """A batch of a signal: its label is its first token."""
    data = draw_sets(SignalTask(delay=9, distractors=4), (50, 5, 5), seed=1).train
    for batch in islice(batches(data, 16, seed=5), 4):
        assert torch.equal(batch.inputs[0], batch.targets)
