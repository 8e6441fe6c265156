"""Dropout between layers and in time: what is dropped, for how long, and what is never dropped."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gradflow.cells import Dropout, DropoutMasks, ForeignCell, Stack
from gradflow.cells.stack import with_recurrent_mask
from gradflow.cells.stack.recurrent_mask import advance_masked
from gradflow.errors import CellLoadError, SettingError, UnknownNameError
from tests.cases import SUBJECT_KINDS, random_subject
from tests.cells.layers import inputs, torch_layer
from tests.engine.measuring import cell_of

ROUNDING = {"rtol": 1e-12, "atol": 1e-13}


def seeded(seed: int = 0) -> torch.Generator:
    """Return a generator of this seed."""
    return torch.Generator().manual_seed(seed)


def masks_of(stack: Stack, rates: Dropout, *, steps: int = 6) -> DropoutMasks:
    """Draw masks for three samples."""
    return stack.draw_masks(steps, 3, generator=seeded(), dropout=rates)


def test_nothing_is_dropped_unless_in_training() -> None:
    """As in torch: eval() turns dropout off, train() draws anew at every call."""
    stack = Stack.from_torch(torch_layer("gru", dropout=0.5))
    x = inputs()
    assert torch.equal(stack(x)[0], stack(x)[0])
    stack.train()
    assert not torch.equal(stack(x)[0], stack(x)[0])
    assert stack.run(x).masks is not None


def test_dropout_is_between_layers_only() -> None:
    """Neither the first layer's input nor the last layer's output is dropped, as in torch."""
    layer = torch_layer("gru", layers=3)
    stack, x = Stack.from_torch(layer), inputs()
    masks = masks_of(stack, Dropout(between=0.5))
    assert masks.between[0] is None
    run = stack.run(x, masks=masks)
    assert torch.equal(run.inputs[0], x)
    for lower, upper in ((0, 1), (1, 2)):
        assert torch.equal(run.inputs[upper], run.states[lower][0] * masks.between[upper])
    assert torch.equal(run.output, run.states[2][0])


def test_what_is_left_is_scaled_so_that_the_mean_stays() -> None:
    """Factors are 0 with the rate's probability, else 1 / (1 - rate)."""
    stack = Stack.build("gru", 3, 200, layers=2, dtype=torch.float64)
    masks = stack.draw_masks(100, 3, generator=seeded(), dropout=Dropout(between=0.2))
    drawn = masks.between[1]
    assert set(drawn.unique().tolist()) == {0.0, 1.25}
    # 60,000 draws: the standard error of the mean is 0.002
    assert drawn.mean().item() == pytest.approx(1.0, abs=0.01)


def test_a_variational_mask_lasts_for_the_whole_sequence() -> None:
    """One mask per sample, layer and sequence; fresh masks differ from step to step."""
    stack = Stack.from_torch(torch_layer("lstm"))
    rates = {"between": 0.5, "recurrent": 0.5}
    for kind, steps in (("sequence", 1), ("step", 6)):
        masks = masks_of(stack, Dropout(**rates, masks=kind))
        assert masks.between[1].shape == (steps, 3, 4)
        assert [mask.shape for mask in masks.recurrent] == [(steps, 3, 4)] * 2
    fresh = masks.recurrent[0]
    assert not torch.equal(fresh[0], fresh[1])
    assert not torch.equal(fresh[:, 0], fresh[:, 1])


def test_one_mask_for_the_sequence_is_the_same_mask_at_every_step() -> None:
    """Given once, or given at each step again: one run."""
    stack, x = Stack.from_torch(torch_layer("gru", bidirectional=True)), inputs()
    once = masks_of(stack, Dropout(between=0.4, recurrent=0.4, masks="sequence"))

    def repeated(masks: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        return tuple(None if mask is None else mask.repeat(6, 1, 1) for mask in masks)

    often = DropoutMasks(repeated(once.between), repeated(once.recurrent))
    lengths = [3, 6, 1]
    assert torch.equal(
        stack(x, lengths=lengths, masks=once)[0], stack(x, lengths=lengths, masks=often)[0]
    )


def test_one_seed_is_one_mask_in_every_dtype() -> None:
    """A float32 run and a float64 run drop the same units."""
    drawn = [
        masks_of(Stack.build("gru", 3, 4, layers=2, dtype=dtype), Dropout(between=0.5)).between[1]
        for dtype in (torch.float32, torch.float64)
    ]
    assert torch.equal(drawn[0].double() > 0, drawn[1] > 0)


@pytest.mark.parametrize("kind", SUBJECT_KINDS)
def test_recurrent_dropout_drops_columns_of_the_recurrent_matrix(kind: str) -> None:
    """U (m * h) is (U diag(m)) h: what the gates read is dropped, what a gate keeps is not."""
    subject = random_subject(kind)
    cell = cell_of(subject.module)
    mask = torch.tensor([[0.0, 2.0, 2.0, 0.0, 2.0], [0.0] * 5, [1.0] * 5]).double()
    drive = cell.drive(subject.inputs[0])
    new = advance_masked(cell, drive, subject.state, mask)
    view = with_recurrent_mask(cell, mask)
    for one, other in zip(new, view.advance(drive, subject.state), strict=True):
        torch.testing.assert_close(one, other, **ROUNDING)
    assert torch.equal(cell.weight_hh, dict(subject.module.named_parameters())["weight_hh"])


@pytest.mark.parametrize("kind", SUBJECT_KINDS)
def test_the_derivative_under_a_mask_is_autograds(kind: str) -> None:
    """Closed form of the masked cell against autograd through the masked step."""
    subject = random_subject(kind)
    cell, widths = cell_of(subject.module), [part.shape[1] for part in subject.state]
    mask = torch.tensor([[0.0, 2.0, 2.0, 0.0, 2.0], [2.0] * 5, [0.0] * 5]).double()
    drive = cell.drive(subject.inputs[0])

    def step(row: int, joint: Tensor) -> Tensor:
        state = tuple(part.unsqueeze(0) for part in joint.split(widths))
        new = advance_masked(cell, drive[row : row + 1], state, mask[row : row + 1])
        return torch.cat(new, dim=1).squeeze(0)

    states = tuple(part.unsqueeze(0) for part in subject.state)
    with torch.no_grad():
        own = with_recurrent_mask(cell, mask).linearize(drive.unsqueeze(0), states)
    joint = torch.cat(subject.state, dim=1)
    for row in range(3):
        expected = torch.autograd.functional.jacobian(lambda s, row=row: step(row, s), joint[row])
        torch.testing.assert_close(own.dense(0)[row], expected, **ROUNDING)


def test_weights_learn_through_a_recurrent_mask() -> None:
    """The masked run is differentiable: a dropped unit's column gets no gradient."""
    stack, x = Stack.from_torch(torch_layer("rnn", layers=1)), inputs(batch=1)
    masks = DropoutMasks((None,), (torch.tensor([[[0.0, 2.0, 2.0, 2.0]]]).double(),))
    stack(x, masks=masks)[0].sum().backward()
    gradient = stack.cell(0).weight_hh.grad
    assert not torch.any(gradient[:, 0])
    assert torch.any(gradient[:, 1])


def test_a_users_cell_does_not_tell_where_it_reads_h() -> None:
    """Recurrent dropout of a foreign cell is refused in words; between layers it is fine."""
    cells = [ForeignCell(torch.nn.GRUCell(3, 4)), ForeignCell(torch.nn.GRUCell(4, 4))]
    with pytest.raises(CellLoadError, match="only a built-in cell tells where that is"):
        Stack(cells, dropout=Dropout(recurrent=0.1))
    stack = Stack(cells, dropout=0.5)
    with pytest.raises(CellLoadError, match="recurrent dropout acts on the old h"):
        stack.draw_masks(2, 1, dropout=Dropout(recurrent=0.1))
    assert stack.draw_masks(2, 1).between[1].shape == (2, 1, 4)


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5, float("nan")])
def test_a_rate_is_from_0_to_below_1(rate: float) -> None:
    """At 1 nothing would be left to scale."""
    with pytest.raises(SettingError, match="from 0 to below 1"):
        Dropout(between=rate)
    with pytest.raises(SettingError, match="dropout recurrent"):
        Dropout(recurrent=rate)


@pytest.mark.usefixtures("unchecked_annotations")
def test_the_kinds_of_masks_are_two() -> None:
    """The nearest one is offered."""
    with pytest.raises(UnknownNameError, match="Did you mean 'sequence'"):
        Dropout(0.5, masks="sequense")
