"""Running in memory made beforehand is stepping; few columns are multiplied like many."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gradflow.cells import GRU, LSTM, RNN, Cell, stack_cells
from gradflow.cells.protocol import Step
from gradflow.cells.recurrence import add_bias, run_by_steps, times_columns
from gradflow.cells.row_sums import RowSums

FORMS = {
    "lstm": lambda **bias: LSTM(3, 5, dtype=torch.float64, **bias),
    "gru": lambda **bias: GRU(3, 5, dtype=torch.float64, **bias),
    "gru-before": lambda **bias: GRU(3, 5, reset="before", dtype=torch.float64, **bias),
    "rnn": lambda **bias: RNN(3, 5, dtype=torch.float64, **bias),
    "rnn-relu": lambda **bias: RNN(3, 5, nonlinearity="relu", dtype=torch.float64, **bias),
}
each_form = pytest.mark.parametrize("form", FORMS)


def make(form: str, *, members: int = 1, bias: bool = True) -> Cell:
    """Return a random cell, or an ensemble of several."""
    torch.manual_seed(len(form) + members)
    cells = [FORMS[form](bias=bias) for _ in range(members)]
    return stack_cells(cells) if members > 1 else cells[0]


def start(cell: Cell, batch: int, steps: int = 7) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return random input and a random first state."""
    x = torch.randn(steps, batch, 3, dtype=torch.float64)
    return x, tuple(torch.randn(batch, 5, dtype=torch.float64) for _ in cell.parts)


@each_form
@pytest.mark.parametrize(("members", "batch"), [(1, 1), (1, 3), (3, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_a_run_is_its_steps(form: str, members: int, batch: int, bias: bool) -> None:
    """Every state of a run is what stepping gives, for one row, several, and an ensemble."""
    cell = make(form, members=members, bias=bias)
    x, state = start(cell, batch)
    drive = cell.drive(x).detach()
    for found, expected in zip(
        cell.run(drive, state), run_by_steps(cell, drive, state), strict=True
    ):
        assert found.shape == (8, batch, 5)
        # the sums of a pre-activation are taken in another order: a few units of round-off
        torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-14)


@each_form
def test_a_constant_input_is_one_step_of_memory(form: str) -> None:
    """A drive that is one step expanded gives the states of the same drive written out."""
    cell = make(form)
    _, state = start(cell, 2)
    once = cell.drive(torch.randn(1, 2, 3, dtype=torch.float64)).detach()
    same = once.expand(7, -1, -1)
    assert add_bias(same, cell.bias_hh).stride(0) == 0
    for found, expected in zip(
        cell.run(same, state), cell.run(same.contiguous(), state), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_a_subclass_that_steps_in_its_own_way_runs_in_it() -> None:
    """Overriding `compute` alone is enough: the faster loop of the parent is not taken."""

    class Halved(RNN):
        def compute(self, drive: Tensor, state: tuple[Tensor, ...]) -> Step:
            step = super().compute(drive, state)
            return Step(self.parts, (0.5 * step.state[0],), {}, None)

    cell = Halved(3, 5, dtype=torch.float64)
    x, state = start(cell, 1)
    drive = cell.drive(x).detach()
    (states,) = cell.run(drive, state)
    torch.testing.assert_close(states[1], cell.advance(drive[0], state)[0].detach())


@each_form
@pytest.mark.parametrize(("members", "batch"), [(1, 1), (1, 3), (3, 3)])
def test_factors_multiply_as_the_step_jacobians_do(form: str, members: int, batch: int) -> None:
    """matrix_t P[read] + keep_t P[kept] is J_t P, whichever steps are asked for together."""
    cell = make(form, members=members)
    x, state = start(cell, batch)
    drive = cell.drive(x).detach()
    with torch.no_grad():
        states = tuple(part[:-1] for part in cell.run(drive, state))
        steps = cell.linearize(drive, states)
        for first, last in [(0, 7), (2, 5), (6, 7)]:
            factors = steps.factors(first, last)
            for t in range(first, last):
                jacobian = steps.dense(t)
                block = torch.randn(batch, jacobian.shape[-1], 4, dtype=torch.float64)
                found = factors.matrix[t - first] @ block[:, factors.read]
                if factors.keep is not None:
                    keep = factors.keep[t - first]
                    kept = keep * block[:, factors.kept].unsqueeze(1)
                    found = found + kept.flatten(1, 2)
                torch.testing.assert_close(found, jacobian @ block, rtol=1e-12, atol=1e-13)


@each_form
@pytest.mark.parametrize("columns", [1, 4, 40])
@pytest.mark.parametrize(("members", "batch"), [(1, 1), (1, 3), (3, 3)])
def test_few_columns_and_many_are_pushed_and_pulled_alike(
    form: str, columns: int, members: int, batch: int
) -> None:
    """Push is J_t v and pull is J_t^T v, on either side of where the way of multiplying changes."""
    cell = make(form, members=members)
    x, state = start(cell, batch, steps=2)
    drive = cell.drive(x).detach()
    with torch.no_grad():
        states = tuple(part[:-1] for part in cell.run(drive, state))
        steps = cell.linearize(drive, states)
        jacobian = steps.dense(1).clone()
        block = torch.randn(batch, jacobian.shape[-1], columns, dtype=torch.float64)
        torch.testing.assert_close(steps.push(1, block), jacobian @ block, rtol=1e-12, atol=1e-13)
        torch.testing.assert_close(
            steps.pull(1, block), jacobian.mT @ block, rtol=1e-12, atol=1e-13
        )


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("groups", [1, 2])
def test_row_sums_are_sums_of_scaled_rows(members: int, groups: int) -> None:
    """Each row of the sum is the matrices' rows times their coefficients, at every step."""
    generator = torch.Generator().manual_seed(0)
    coefficients = torch.randn(6, 2, groups * 4, 3, generator=generator, dtype=torch.float64)
    shape = (3, 4, 5) if members == 1 else (2, 3, 4, 5)
    matrices = torch.randn(shape, generator=generator, dtype=torch.float64)
    each = "kjw" if members == 1 else "bkjw"
    repeated = torch.cat([matrices] * groups, dim=-2)
    expected = torch.einsum(f"tbjk,{each}->tbjw", coefficients, repeated)
    sums = RowSums(coefficients, matrices)
    for first, last in [(0, 6), (1, 3), (5, 6)]:
        torch.testing.assert_close(sums.steps(first, last), expected[first:last])


@pytest.mark.parametrize("batch", [1, 2])
def test_times_columns_is_the_plain_product(batch: int) -> None:
    """(columns^T weight^T)^T is weight @ columns, for shared weights and for an ensemble's."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    columns = torch.randn(batch, 4, 3, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(times_columns(weight, columns), weight @ columns)
    each = weight.expand(batch, -1, -1)
    torch.testing.assert_close(times_columns(each, columns), weight @ columns)
