"""Losses, accuracies and gradients of padded batches count own steps, and nothing else."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch import nn

from gradflow.engine.masks import align_by_lag, masked_accuracy, masked_loss, padding_share
from gradflow.errors import DtypeError, ShapeError, UnknownNameError

LENGTHS = [4, 1, 3]


def draws(*shape: int, seed: int = 0) -> torch.Tensor:
    """Return normal numbers of a seed."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def classes(*shape: int, count: int = 5, seed: int = 0) -> torch.Tensor:
    """Return class numbers of a seed."""
    return torch.randint(0, count, shape, generator=torch.Generator().manual_seed(seed))


def test_the_loss_is_the_mean_over_own_steps() -> None:
    """8 own steps of 12: torch's loss of their logits, put together sample by sample."""
    logits, targets = draws(4, 3, 5), classes(4, 3)
    pieces = [(logits[:n, b], targets[:n, b]) for b, n in enumerate(LENGTHS)]
    joined = nn.functional.cross_entropy(
        torch.cat([piece[0] for piece in pieces]), torch.cat([piece[1] for piece in pieces])
    )
    # a sum of 8 terms in another order
    torch.testing.assert_close(masked_loss(logits, targets, LENGTHS), joined, rtol=1e-14, atol=0)
    each = [nn.functional.cross_entropy(*piece) for piece in pieces]
    by_sample = masked_loss(logits, targets, LENGTHS, average="sample")
    torch.testing.assert_close(by_sample, torch.stack(each).mean(), rtol=1e-14, atol=0)


@pytest.mark.parametrize("average", ["step", "sample"])
def test_padding_has_no_say_and_no_gradient(average: str) -> None:
    """Logits of nan and class numbers that do not exist stand there; the gradient is exactly 0."""
    logits, targets = draws(4, 3, 5), classes(4, 3)
    expected = masked_loss(logits, targets, LENGTHS, average=average)
    padded = torch.arange(4).unsqueeze(1) >= torch.tensor(LENGTHS)
    logits[padded], targets[padded] = torch.nan, -7
    logits.requires_grad_()
    loss = masked_loss(logits, targets, LENGTHS, average=average)
    assert torch.equal(loss, expected)
    loss.backward()
    assert not torch.any(logits.grad[padded])
    assert bool((logits.grad[~padded] != 0).all())


def test_other_losses_go_by_name_or_as_a_function() -> None:
    """Squared error over several numbers a step; logits of two classes; one's own."""
    numbers, wanted = draws(4, 3, 2), draws(4, 3, 2, seed=1)
    pieces = [((numbers - wanted)[:n, b] ** 2).mean(dim=1) for b, n in enumerate(LENGTHS)]
    expected = torch.cat(pieces).mean()
    torch.testing.assert_close(
        masked_loss(numbers, wanted, LENGTHS, "squared_error"), expected, rtol=1e-14, atol=0
    )
    own = masked_loss(numbers, wanted, LENGTHS, lambda p, t: ((p - t) ** 2).mean(dim=1))
    torch.testing.assert_close(own, expected, rtol=1e-14, atol=0)
    two, labels = draws(4, 3), classes(4, 3, count=2)
    entropy = nn.functional.binary_cross_entropy_with_logits(two, labels.double(), reduction="none")
    inside = torch.arange(4).unsqueeze(1) < torch.tensor(LENGTHS)
    torch.testing.assert_close(
        masked_loss(two, labels, LENGTHS, "binary_cross_entropy"),
        entropy[inside].mean(),
        rtol=1e-14,
        atol=0,
    )


def test_accuracy_counts_own_steps() -> None:
    """Padding predicted right would make it 0.75, padding predicted wrong 0.25; it is 0.5."""
    logits = torch.eye(2)[torch.tensor([[0, 1], [1, 0]])]
    targets = torch.tensor([[0, 0], [1, 0]])
    assert masked_accuracy(logits, targets, [1, 1]).item() == 0.5
    for padded in (0, 1):
        targets[1] = padded
        assert masked_accuracy(logits, targets, [1, 1]).item() == 0.5


def test_accuracy_by_sample_gives_each_sample_one_vote() -> None:
    """4 of 4 steps right, 0 of 1 right: 0.8 by steps, 0.5 by samples."""
    logits = torch.ones(4, 2)
    targets = torch.tensor([[1, 0], [1, 1], [1, 1], [1, 1]])
    assert masked_accuracy(logits.double(), targets, [4, 1]).item() == 0.8
    assert masked_accuracy(logits, targets, [4, 1], average="sample").item() == 0.5


def test_lags_count_from_each_samples_own_end() -> None:
    """Samples of 4, 1 and 3 steps: 3 have a last step, 2 one before it, 1 has a third before."""
    values = torch.arange(12.0).view(4, 3)
    aligned = align_by_lag(values, LENGTHS)
    assert aligned.count.tolist() == [3, 2, 2, 1]
    assert aligned.values[:, 0].tolist() == [9.0, 6.0, 3.0, 0.0]
    assert aligned.values[0].tolist() == [9.0, 1.0, 8.0]
    assert aligned.mean().tolist() == [6.0, 5.5, 2.5, 0.0]
    twice = align_by_lag(torch.stack([values, -values]), LENGTHS)
    assert torch.equal(twice.mean()[1], -aligned.mean())


def test_a_share_of_a_gradient_that_is_nowhere_is_0() -> None:
    """And a sample without padding has none in it."""
    gradient = torch.zeros(3, 2, 4)
    assert padding_share(gradient, [1, 3]).tolist() == [0.0, 0.0]
    gradient[2, 0, 1] = -2.0
    assert padding_share(gradient, [1, 3]).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: masked_loss(x, x, [1, 1], "cros_entropy"), UnknownNameError, "'cross_entropy'"),
        (lambda x: masked_loss(x, x, [1, 1], nn.MSELoss()), ShapeError, "reduction='none'"),
        (lambda x: masked_loss(x, x[:1], [1, 1]), ShapeError, r"begin with \(time, batch\)"),
        (lambda x: masked_loss(x, x, [3, 1], "squared_error"), ShapeError, "got 3"),
        (lambda x: masked_accuracy(x, x, [1]), ShapeError, "each of the 2 samples"),
        (lambda x: align_by_lag(x, [0, 1]), ShapeError, "got 0"),
        (lambda x: align_by_lag(x[0], [1, 1]), ShapeError, r"\(\.\.\., time, batch\)"),
        (lambda x: padding_share(x[0], [1, 1]), ShapeError, r"\(time, batch, \.\.\.\)"),
        (lambda x: padding_share(x, [1]), ShapeError, "each of the 2 samples"),
        (lambda x: masked_loss(x, x[..., None], [1, 1], "squared_error"), ShapeError, "Squeeze"),
        (lambda x: masked_loss(x, x[..., None], [1, 1], "binary_cross_entropy"), ShapeError, "Squ"),
        (lambda x: masked_loss(x, x, [1, 1]), ShapeError, "takes logits"),
        (lambda x: masked_loss(x.long(), x, [1, 1], "squared_error"), DtypeError, "floating"),
        (lambda x: masked_loss(x, x, [1, 2], lambda p, _: p.sum(0, True)), ShapeError, "of 3 step"),
        (lambda x: masked_loss(x, x, [1, 1], lambda _, __: 1.0), ShapeError, "gave float"),
        (lambda x: masked_accuracy(x[..., None], x, [1, 1]), ShapeError, "Squeeze an axis of one"),
        (lambda x: masked_accuracy(x, x[..., None], [1, 1]), ShapeError, "Squeeze an axis of one"),
        (lambda x: masked_loss(x.expand(3, 2, 2), x, [1, 1]), ShapeError, "begin with"),
    ],
)
def test_what_does_not_fit_is_told(call, error: type[Exception], words: str) -> None:
    """The rule, what came, and the way out."""
    with pytest.raises(error, match=words):
        call(torch.zeros(2, 2))


@pytest.mark.parametrize("number", [3, -1, -100])
def test_a_class_that_does_not_exist_is_no_loss_of_zero(number: int) -> None:
    """torch leaves -100 out of its own mean; in a mean over own steps it would count as 0."""
    with pytest.raises(ShapeError, match=f"from 0 to 2, as there are 3 logits.*has {number}"):
        masked_loss(draws(2, 1, 3), torch.full((2, 1), number), [2])


def test_class_numbers_of_any_whole_type_are_classes() -> None:
    """Short whole numbers do not wrap around, and a truth is no class but 1."""
    logits, wanted = draws(4, 2, 3), classes(4, 2, count=3)
    expected = masked_loss(logits, wanted, [4, 1])
    assert masked_loss(logits, wanted.int(), [4, 1]) == expected
    far = nn.functional.one_hot(torch.full((1, 1), 256), 257).double()
    assert masked_accuracy(far, torch.zeros(1, 1, dtype=torch.uint8), [1]) == 0.0
    assert masked_accuracy(far, torch.ones(1, 1, dtype=torch.bool), [1]) == 0.0


def test_of_several_labels_a_step_each_counts() -> None:
    """One sample with 2 of 2 right, one with 1 of 2: 0.75 by step and by sample."""
    logits = torch.tensor([[[1.0, -1.0], [1.0, 1.0]]])
    targets = torch.tensor([[[1, 0], [1, 0]]])
    assert masked_accuracy(logits, targets, [1, 1]) == 0.75
    assert masked_accuracy(logits, targets, [1, 1], average="sample") == 0.75


def test_a_share_of_a_huge_or_broken_gradient_is_no_zero() -> None:
    """Sums of norms beyond float64 are still a share; of nan or infinity nothing is known."""
    ones = torch.ones(2, 2, 3, dtype=torch.float64)
    assert padding_share(ones * 1e308, [1, 2]).tolist() == [0.5, 0.0]
    assert padding_share(ones * 1e-320, [1, 2]).tolist() == [0.5, 0.0]
    for value in (torch.nan, torch.inf):
        assert padding_share(ones * value, [1, 2]).isnan().tolist() == [True, True]


def test_whole_numbers_align_by_lag_too() -> None:
    """What a sample has not is nan, which no whole number is."""
    found = align_by_lag(torch.tensor([[1, 2], [3, 4]]), [2, 1])
    assert found.mean().tolist() == [2.5, 1.0]


def test_an_average_that_does_not_exist_is_told() -> None:
    """There are two."""
    # without the tests' own type checks, which would speak first
    loss = inspect.unwrap(masked_loss)
    numbers = torch.zeros(2, 1)
    with pytest.raises(UnknownNameError, match="Known: sample, step"):
        loss(numbers, numbers, [1], "squared_error", average="token")
