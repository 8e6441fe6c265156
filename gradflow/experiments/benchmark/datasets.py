"""Training, validation and test sets: drawn once from one rule, and never overlapping.

All models of a delay get the same sets, since these come from the task and the seed alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from gradflow.errors import SettingError
from gradflow.experiments.benchmark.tasks import Sequences, SequenceTask

_PART = 8  # up to so many times what is needed, all sequences are counted through and shuffled


@dataclass
class DataSets:
    """The three sets. `shared` counts sequences of one set that are in another one too.

    `fingerprint` is the sha256 of all three, in order: equal where two models had equal data.
    """

    train: Sequences
    validation: Sequences
    fingerprint: str
    shared: int
    _test: Sequences = field(repr=False)
    _looked: bool = field(default=False, repr=False)

    def test(self) -> Sequences:
        """Return the test set, once: a second look would be a choice by it.

        Raises:
            RuntimeError: it was asked for before.
        """
        if self._looked:
            raise RuntimeError("the test set is looked at once, after training; it was before.")
        self._looked = True
        return self._test


def draw_sets(
    task: SequenceTask, sizes: Sequence[int], *, seed: int, overlap: bool = False
) -> DataSets:
    """Draw training, validation and test sets of these sizes, all their sequences different.

    Args:
        task: the rule.
        sizes: of the three sets.
        seed: of the draw.
        overlap: where there are too few different sequences, give each set all of them.

    Raises:
        SettingError: there are too few, and sets must not overlap.
    """
    require_enough(task, sizes, overlap=overlap)
    generator = torch.Generator().manual_seed(seed)
    if is_too_small(task, sizes):
        rows = [task.numbered(torch.arange(task.different or 0))] * 3
    else:
        rows = list(_different_rows(task, sum(sizes), generator).split(list(sizes)))
    shared = count_shared(rows)
    if shared and not is_too_small(task, sizes):
        raise RuntimeError(f"{shared} sequences of one set are in another: the draw is at fault.")
    train, validation, test = (task.sequences(part) for part in rows)
    return DataSets(train, validation, _fingerprint(rows), shared, test)


def is_too_small(task: SequenceTask, sizes: Sequence[int]) -> bool:
    """Return whether the task has fewer different sequences than three sets need."""
    return task.different is not None and task.different < sum(sizes)


def require_enough(task: SequenceTask, sizes: Sequence[int], *, overlap: bool = False) -> None:
    """Raise SettingError where sets of these sizes would overlap and must not."""
    if is_too_small(task, sizes) and not overlap:
        raise SettingError(
            f"training, validation and test sets must not overlap, and at delay {task.delay} the "
            f"{task.name} task has {task.different:,} different sequences for {sum(sizes):,}. "
            f"Lower --train-size and the others, {task.to_have_more}, or say "
            "--overlap where-unavoidable: then every set has all of them, and the result says so."
        )


def count_shared(rows: Sequence[Tensor]) -> int:
    """Return how many sequences are in more than one set, by their bytes.

    >>> count_shared([torch.tensor([[1, 2], [3, 4]]), torch.tensor([[3, 4]])])
    1
    """
    sets = [{row.tobytes() for row in part.numpy()} for part in rows]
    return sum(map(len, sets)) - len(set().union(*sets))


def batches(sequences: Sequences, size: int, seed: int) -> Iterator[Sequences]:
    """Yield batches without end: all sequences in a new order, again and again."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.empty(0, dtype=torch.long)
    while True:
        while len(order) < size:
            again = torch.randperm(len(sequences), generator=generator)
            order = torch.cat([order, again])
        yield sequences.at(order[:size])
        order = order[size:]


def _different_rows(task: SequenceTask, count: int, generator: torch.Generator) -> Tensor:
    """Return so many different rows of choices, uniformly from all."""
    if task.different is not None and task.different <= _PART * count:
        return task.numbered(torch.randperm(task.different, generator=generator)[:count])
    kept: dict[bytes, None] = {}
    rows: list[Tensor] = []
    while len(rows) < count:
        for row in task.draw(count, generator):
            name = row.numpy().tobytes()
            if name not in kept and len(rows) < count:
                kept[name] = None
                rows.append(row)
    return torch.stack(rows)


def _fingerprint(rows: Sequence[Tensor]) -> str:
    digest = hashlib.sha256()
    for part in rows:
        digest.update(str(tuple(part.shape)).encode())
        digest.update(part.contiguous().numpy().tobytes())
    return digest.hexdigest()
