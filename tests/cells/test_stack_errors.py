"""What is said to those who give a stack cells, inputs or states that do not fit."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gradflow.cells import GRU, LSTM, Stack
from gradflow.errors import CellLoadError, DtypeError, ShapeError

pytestmark = pytest.mark.usefixtures("unchecked_annotations")


@pytest.mark.parametrize(
    ("cells", "options", "words"),
    [
        ([], {}, "at least one layer, a cell a layer; got 0 cells"),
        ([GRU(3, 4)], {"bidirectional": True}, "forward and reversed; got 1 cells"),
        ([GRU(3, 4), GRU(3, 4)], {}, "layer 2 must read what layer 1 shows, 4 numbers"),
        ([GRU(3, 4), GRU(3, 4), GRU(8, 4), GRU(4, 4)], {"bidirectional": True}, "input_size=8"),
        ([GRU(3, 4), GRU(2, 4)], {"bidirectional": True}, "both directions of layer 1"),
        ([GRU(3, 4)], {"residual": True}, "no layer is: 3 to 4"),
    ],
)
def test_cells_that_do_not_fit_are_named(cells: list, options: dict, words: str) -> None:
    """Which layer, how wide it is, and how wide it should be."""
    with pytest.raises(ShapeError, match=words):
        Stack(cells, **options)


def test_a_cell_that_is_no_module_is_refused() -> None:
    """Its parameters would be lost to the stack."""

    class Plain:
        input_size, parts, part_sizes = 3, ("h",), (3,)

    with pytest.raises(CellLoadError, match=r"got a Plain\. Wrap a module of your own"):
        Stack([Plain()])


def test_a_packed_sequence_is_refused_with_the_way_out() -> None:
    """Lengths say the same, and the caller's order is kept."""
    packed = nn.utils.rnn.pack_sequence([torch.zeros(2, 3)])
    with pytest.raises(ShapeError, match="give pad_packed_sequence"):
        Stack.build("gru", 3, 4)(packed)


@pytest.mark.parametrize(
    ("x", "options", "error", "words"),
    [
        (torch.zeros(2, 1, 4), {}, ShapeError, r"x must be \(time, batch, 3\)"),
        (torch.zeros(0, 1, 3), {}, ShapeError, "at least one step"),
        (torch.zeros(2, 3), {}, ShapeError, r"got shape \(2, 3\)"),
        (torch.zeros(2, 1, 3).double(), {}, DtypeError, "dtype torch.float32; got torch.float64"),
        (torch.zeros(2, 1, 3), {"lengths": [3]}, ShapeError, "between 1 and 2.*got 3"),
        (torch.zeros(2, 1, 3), {"lengths": [0]}, ShapeError, "a sample without a step.*got 0"),
        (torch.zeros(2, 1, 3), {"lengths": [1, 1]}, ShapeError, r"each of the 1 samples; got .*2"),
        (torch.zeros(2, 1, 3), {"lengths": [1.0]}, ShapeError, "whole number"),
        (torch.zeros(2, 1, 3), {"lengths": torch.tensor([True])}, ShapeError, "torch.bool"),
        (torch.zeros(2, 1, 3), {"state": torch.zeros(1, 1, 4)}, ShapeError, "the state of this"),
        (torch.zeros(2, 1, 3), {"state": torch.zeros(2, 2, 4)}, ShapeError, "batch rows"),
        (torch.zeros(2, 1, 3), {"state": (torch.zeros(2, 1, 4),) * 2}, ShapeError, "is h, each"),
    ],
)
def test_a_call_that_does_not_fit_is_told_why(
    x: torch.Tensor, options: dict, error: type[Exception], words: str
) -> None:
    """The rule, and what came."""
    with pytest.raises(error, match=words):
        Stack.build("gru", 3, 4, layers=2)(x, **options)


def test_run_takes_a_state_for_each_cell() -> None:
    """One tuple per cell, checked as a cell's state is."""
    stack = Stack([LSTM(3, 4), GRU(4, 2)])
    with pytest.raises(ShapeError, match="a stack of 2 cells has as many states; got 1"):
        stack.run(torch.zeros(2, 1, 3), [(torch.zeros(1, 4),) * 2])
    with pytest.raises(ShapeError, match="the state of a lstm"):
        stack.run(torch.zeros(2, 1, 3), [(torch.zeros(1, 4),), (torch.zeros(1, 2),)])
