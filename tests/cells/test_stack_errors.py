"""What is said to those who give a stack cells, inputs or states that do not fit."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gradflow.cells import GRU, LSTM, Stack
from gradflow.cells.stack import Dropout
from gradflow.errors import (
    CellLoadError,
    DtypeError,
    SettingError,
    ShapeError,
    UnknownNameError,
)

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


@pytest.mark.parametrize("layers", [0, -3, 2.5, True, None])
def test_layers_are_counted_from_one(layers: object) -> None:
    """[...] * -1 is an empty list: no layers at all would have been one."""
    with pytest.raises(ShapeError, match="layers is a whole number and at least 1"):
        Stack.build("gru", 3, 4, layers=layers)


def test_an_option_that_no_cell_has_is_not_left_out() -> None:
    """torch's num_layers=3 would have been a stack of one layer."""
    with pytest.raises(UnknownNameError, match=r"no option 'num_layers'\. Use layers="):
        Stack.build("gru", 3, 4, num_layers=3)
    with pytest.raises(UnknownNameError, match="Did you mean 'bias'"):
        Stack.build("gru", 3, 4, biass=False)
    assert len(Stack.build("lstm", 3, 4, reset="before").cells) == 1  # a GRU's: left out


def test_a_new_stack_may_be_batch_first() -> None:
    """As torch's layers may."""
    output, h = Stack.build("gru", 3, 4, batch_first=True)(torch.zeros(2, 5, 3))
    assert (output.shape, h.shape) == ((2, 5, 4), (1, 2, 4))


@pytest.mark.parametrize("given", [nn.Linear(3, 4), nn.LSTMCell(3, 4), None])
def test_what_is_no_layer_of_torchs_is_refused(given: object) -> None:
    """With what to do of a single cell."""
    with pytest.raises(CellLoadError, match=r"only nn\.LSTM, nn\.GRU and nn\.RNN"):
        Stack.from_torch(given)


@pytest.mark.parametrize("given", [None, GRU(3, 4), [nn.GRUCell(3, 4)]])
def test_what_is_no_list_of_cells_is_refused(given: object) -> None:
    """A cell alone, or torch's own cell, which says nothing of its parts."""
    with pytest.raises(CellLoadError, match="got a"):
        Stack(given)


def test_cells_of_two_dtypes_are_refused() -> None:
    """At once, and not in the middle of a run."""
    with pytest.raises(DtypeError, match=r"got torch\.float32 and torch\.float64"):
        Stack([GRU(3, 4), GRU(4, 4, dtype=torch.float64)])


def test_a_state_that_is_none_is_told() -> None:
    """Of stacks of like cells and of unlike ones."""
    for stack in (Stack.build("gru", 3, 4), Stack([LSTM(3, 4), GRU(4, 2)])):
        with pytest.raises(ShapeError, match="got a int"):
            stack(torch.zeros(2, 1, 3), 5)


@pytest.mark.parametrize(("steps", "batch"), [(6, 2), (6, 1), (5, 3), (7, 3)])
def test_masks_of_another_input_are_refused(steps: int, batch: int) -> None:
    """Masks of three samples would make three samples of one; of one, drop alike in all."""
    stack = Stack.build("gru", 3, 4, layers=2)
    masks = stack.draw_masks(steps, batch, dropout=Dropout(0.1, 0.2))
    with pytest.raises(ShapeError, match=r"stack\.draw_masks\(6, 3\)"):
        stack(torch.zeros(6, 3, 3), masks=masks)


def test_masks_of_another_stack_are_refused() -> None:
    """And what is no mask at all, or drawn for no step."""
    masks = Stack.build("gru", 3, 4).draw_masks(6, 3, dropout=0.5)
    with pytest.raises(ShapeError, match="of a stack of 1 layers; this one has 2"):
        Stack.build("gru", 3, 4, layers=2)(torch.zeros(6, 3, 3), masks=masks)
    with pytest.raises(ShapeError, match="got a str"):
        Stack.build("gru", 3, 4)(torch.zeros(6, 3, 3), masks="fresh")
    with pytest.raises(ShapeError, match="steps is a whole number"):
        Stack.build("gru", 3, 4).draw_masks(0, 3)


@pytest.mark.parametrize("rate", ["0.3", None, 1.0, float("nan"), True])
def test_a_rate_that_is_none_is_refused(rate: object) -> None:
    """Text is no number, though it reads like one; torch alone drops everything at 1."""
    with pytest.raises(SettingError, match="from 0 to below 1"):
        Stack.build("gru", 3, 4, dropout=rate)
