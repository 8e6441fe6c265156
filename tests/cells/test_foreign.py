"""A user's module as a cell: its numbers are its own, and its gates are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gradflow.cells import LSTM, ForeignCell, hold_
from gradflow.cells.projected_lstm import ProjectedLSTM
from gradflow.engine import jacobian_norms
from gradflow.engine.generic import step_jacobians
from tests import cases
from tests.cells.user_modules import (
    DeclaredLSTM,
    MinimalGatedUnit,
    Plain,
    SilentLSTM,
    ThreeParts,
)
from tests.reference import autograd_jacobian
from tests.reference.textbook_gru import TextbookGRUCell

# closed form


def test_a_held_gate_of_a_users_cell_gives_its_power() -> None:
    """The minimal gated unit with z held keeps z^T of its state, on both paths."""
    cell = hold_(ForeignCell(MinimalGatedUnit(1, 6).double()), update=0.9)
    norms = jacobian_norms(cell, torch.zeros(80, 2, 1).double(), (cases.normal(2, 6),))
    expected = np.log(0.9) * np.arange(1, 81)[:, None].repeat(2, axis=1)
    cases.assert_same_log_norm(norms.log_norm, expected)
    cases.assert_same_log_norm(norms.direct_log_norm, expected)
    assert norms.keep_min is not None
    torch.testing.assert_close(norms.keep_min, torch.full((2,), 0.9).double())


def test_a_live_candidate_of_a_users_cell_has_its_own_rate() -> None:
    """At h = 0 the minimal gated unit's step is z I + (1 - z)^2 U, since 1 - z resets too."""
    cell = ForeignCell(MinimalGatedUnit(1, 6).double())
    hold_(cell, update=0.7, candidate_gain=1.3)
    recurrent = cell.get_parameter("candidate.weight")[:, 1:].detach()
    matrix = 0.7 * torch.eye(6).double() + 0.09 * recurrent
    norms = jacobian_norms(cell, torch.zeros(40, 1, 1).double(), cell.initial_state(1))
    for steps in (1, 7, 40):
        power = torch.linalg.matrix_power(matrix, steps)
        expected = torch.linalg.matrix_norm(power, ord=2).log()
        cases.assert_same_log_norm(norms.log_norm[steps - 1, 0], expected)


def test_a_users_lstm_held_keeps_f_to_the_t() -> None:
    """Gates declared by rows of one stacked layer are held without `gate_values`."""
    cell = hold_(ForeignCell(DeclaredLSTM(2, 3).double()), forget=0.5, input=0.5)
    norms = jacobian_norms(
        cell, cases.normal(30, 2, 2), (cases.normal(2, 3), cases.normal(2, 3, seed=1))
    )
    cases.assert_same_log_norm(norms.log_norm[:, 0], np.log(0.5) * np.arange(1, 31))
    cases.assert_same_log_norm(norms.direct_log_norm, norms.log_norm)


# reference


@pytest.mark.parametrize(
    "module",
    [TextbookGRUCell(2, 3), SilentLSTM().double(), Plain().double(), nn.LSTMCell(2, 3).double()],
    ids=lambda module: type(module).__name__,
)
def test_the_jacobians_are_autograds(module: nn.Module) -> None:
    """torch.func through the wrapper gives what autograd gives of the module itself."""
    cell = ForeignCell(module)
    state = tuple(cases.normal(3, width, seed=part) for part, width in enumerate(cell.part_sizes))
    subject = cases.Subject(module, cases.normal(10, 3, cell.input_size), state)
    norms = jacobian_norms(cell, subject.inputs, subject.state, "joint")
    assert norms.method == "generic"
    cases.assert_same_log_norm(norms.log_norm, autograd_jacobian.log_norms(subject))


def test_a_projected_lstm_is_one_layer_of_torchs() -> None:
    """h of 2 and c of 5 columns: states and Jacobians of nn.LSTM with proj_size."""
    layer = nn.LSTM(3, 5, proj_size=2).double()
    module = ProjectedLSTM(3, 5, 2, dtype=torch.float64)
    module.load_state_dict({k.removesuffix("_l0"): v for k, v in layer.state_dict().items()})
    cell = ForeignCell(module)
    assert (cell.parts, cell.part_sizes, cell.kept_part, cell.hidden_size) == (
        ("h", "c"),
        (2, 5),
        "c",
        5,
    )
    h, c = cases.normal(4, 2), cases.normal(4, 5, seed=1)
    x = cases.normal(6, 4, 3, seed=2)
    output, (_, last_c) = layer(x, (h[None], c[None]))
    state: tuple[Tensor, ...] = (h, c)
    for row in x:
        state = cell.step(row, state).state
    torch.testing.assert_close(state[0], output[-1], rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(state[1], last_c[0], rtol=1e-12, atol=1e-14)
    step = cell.step(x[0], (h, c))
    own = step["forget"] * c + step["input"] * step["candidate"]
    torch.testing.assert_close(own, step["c"], rtol=1e-14, atol=1e-15)
    jacobian = step_jacobians(cell, x[:1], (h[None], c[None]))[0]

    def joint(vector: Tensor) -> Tensor:
        parts = vector.split((2, 5), dim=1)
        _, new = layer(x[:1, :1], tuple(part[None] for part in parts))
        return torch.cat([part[0] for part in new], dim=1)

    first = torch.cat([h, c], dim=1)[:1]
    expected = torch.autograd.functional.jacobian(joint, first)[0, :, 0]
    torch.testing.assert_close(jacobian[0], expected, rtol=1e-12, atol=1e-14)


def test_parts_of_three_widths_are_measured_block_by_block() -> None:
    """The slow part, 4 wide, keeps 0.9 directly; its block of the joint Jacobian is autograd's."""
    module = ThreeParts().double()
    cell = ForeignCell(module)
    assert (cell.parts, cell.part_sizes, cell.hidden_size) == (
        ("fast", "slow", "count"),
        (3, 4, 1),
        4,
    )
    state = cell.initial_state(2)
    assert [part.dtype for part in state] == [torch.float64] * 3
    assert state[2].tolist() == [[1.0], [1.0]]
    x = cases.normal(12, 2, 2)
    norms = jacobian_norms(cell, x, state)
    assert norms.block == ("slow", "slow")
    leaf = state[1].clone().requires_grad_()
    current = (state[0], leaf, state[2])
    for row in x:
        current = module(row, current)
    for row in range(2):
        rows = [
            torch.autograd.grad(current[1][row, unit], leaf, retain_graph=True)[0][row]
            for unit in range(4)
        ]
        expected = torch.linalg.matrix_norm(torch.stack(rows), ord=2).log()
        cases.assert_same_log_norm(norms.log_norm[-1, row], expected.detach())
    assert jacobian_norms(cell, x, state, ("count", "slow")).log_norm.isfinite()[1:].all()


def test_gates_as_the_module_shows_them() -> None:
    """`gate_values` is asked at every step; its candidate, where shown, is no gate."""
    module = MinimalGatedUnit(2, 3).double()
    cell = ForeignCell(module)
    x, h = cases.normal(4, 2), cases.normal(4, 3, seed=1)
    step = cell.step(x, (h,))
    torch.testing.assert_close(step["update"], module.gate_values(x, h)["update"])
    assert step.candidate is None
    shown = ForeignCell(ProjectedLSTM(2, 3, 1).double()).step(
        x, (cases.normal(4, 1), cases.normal(4, 3))
    )
    assert set(shown.gates) == {"input", "forget", "output"}
    assert shown.candidate is not None


def test_gates_that_nobody_shows_are_known_while_they_are_held() -> None:
    """A free gate without `gate_values` is left out; a held one is sigmoid of its bias."""
    cell = ForeignCell(DeclaredLSTM(2, 3).double())
    x, state = cases.normal(4, 2), (cases.normal(4, 3), cases.normal(4, 3, seed=1))
    assert cell.step(x, state).gates == {}
    hold_(cell, forget=0.9)
    step = cell.step(x, state)
    assert set(step.gates) == {"input", "forget", "output"}
    torch.testing.assert_close(step["forget"], torch.full((4, 3), 0.9).double())


def test_a_wrapped_lstm_is_our_lstm() -> None:
    """The same weights in torch's module behind the wrapper and in our white box."""
    module = nn.LSTMCell(2, 3).double()
    own, foreign = LSTM.from_torch(module), ForeignCell(module)
    x, state = cases.normal(20, 2, 2), (cases.normal(2, 3), cases.normal(2, 3, seed=1))
    one, other = jacobian_norms(own, x, state), jacobian_norms(foreign, x, state)
    cases.assert_same_log_norm(one.log_norm, other.log_norm)
