"""Lengths of padded sequences: which steps are whose, and what stands at the last of them."""

from __future__ import annotations

import pytest
import torch

from gradflow.cells.masking import last_own_step, length_mask, without_padding
from gradflow.errors import ShapeError


def test_a_mask_is_true_where_a_step_is_a_samples_own() -> None:
    """Lengths 2, 3, 1 of 3 steps; a list, a tuple and a tensor are read alike."""
    expected = [[1, 1, 1], [1, 1, 0], [0, 1, 0]]
    for lengths in ([2, 3, 1], torch.tensor([2, 3, 1]), torch.tensor([2, 3, 1], dtype=torch.int32)):
        assert length_mask(lengths, 3).int().tolist() == expected


def test_padding_is_replaced_and_not_multiplied() -> None:
    """0 * nan is nan: a padded step becomes 0 whatever stood there, and gets a gradient of 0."""
    values = torch.tensor([[[1.0], [2.0]], [[3.0], [float("nan")]]], requires_grad=True)
    clean = without_padding(values, length_mask([2, 1], 2))
    assert clean.tolist() == [[[1.0], [2.0]], [[3.0], [0.0]]]
    clean.sum().backward()
    assert values.grad.tolist() == [[[1.0], [1.0]], [[1.0], [0.0]]]


def test_the_last_own_step_is_each_samples_own() -> None:
    """output[-1] is padding for all but the longest."""
    values = torch.arange(6.0).view(3, 2, 1)
    assert last_own_step(values, [3, 1]).tolist() == [[4.0], [1.0]]


def test_a_list_is_read_whatever_the_default_device_is() -> None:
    """The meta device holds no numbers: a length on it could not be read."""
    with torch.device("meta"):
        assert length_mask([2, 1], 2).int().tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize(
    ("lengths", "words"),
    [
        ([4], "got 4"),
        (torch.tensor([[1]]), r"shape \(1, 1\)"),
        (None, r"got None \(NoneType\)"),
        ("3", r"got 3 \(str\)"),
        ([None], "for each sample, as a list or a tensor"),
        ([2**70], "for each sample"),
        (torch.tensor([1j]), "complex64"),
    ],
)
@pytest.mark.usefixtures("unchecked_annotations")
def test_lengths_that_do_not_fit_are_refused(lengths: object, words: str) -> None:
    """The rule and what came."""
    with pytest.raises(ShapeError, match=words):
        last_own_step(torch.zeros(3, 1, 2), lengths)
