"""A user's module as a cell: the form is found, the numbers are its own, the gates are known."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gradflow.cells import LSTM, CellLike, ForeignCell, Gate, Rows, hold_
from gradflow.cells.projected_lstm import ProjectedLSTM
from gradflow.engine import jacobian_norms
from gradflow.engine.generic import step_jacobians
from gradflow.errors import CellCallError, CellLoadError
from tests import cases
from tests.cells.user_modules import (
    DeclaredLSTM,
    MinimalGatedUnit,
    Plain,
    SilentLSTM,
    ThreeParts,
)
from tests.data import naive_sigmoid_cell
from tests.reference import autograd_jacobian
from tests.reference.textbook_gru import TextbookGRUCell


def normal(*shape: int, seed: int = 0) -> Tensor:
    """Return a random tensor that is always the same."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


# closed form


def test_a_held_gate_of_a_users_cell_gives_its_power() -> None:
    """The minimal gated unit with z held keeps z^T of its state, on both paths."""
    cell = hold_(ForeignCell(MinimalGatedUnit(1, 6).double()), update=0.9)
    norms = jacobian_norms(cell, torch.zeros(80, 2, 1).double(), (normal(2, 6),))
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
    norms = jacobian_norms(cell, normal(30, 2, 2), (normal(2, 3), normal(2, 3, seed=1)))
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
    state = tuple(normal(3, width, seed=part) for part, width in enumerate(cell.part_sizes))
    subject = cases.Subject(module, normal(10, 3, cell.input_size), state)
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
    h, c = normal(4, 2), normal(4, 5, seed=1)
    x = normal(6, 4, 3, seed=2)
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
    x = normal(12, 2, 2)
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
    x, h = normal(4, 2), normal(4, 3, seed=1)
    step = cell.step(x, (h,))
    torch.testing.assert_close(step["update"], module.gate_values(x, h)["update"])
    assert step.candidate is None
    shown = ForeignCell(ProjectedLSTM(2, 3, 1).double()).step(x, (normal(4, 1), normal(4, 3)))
    assert set(shown.gates) == {"input", "forget", "output"}
    assert shown.candidate is not None


def test_gates_that_nobody_shows_are_known_while_they_are_held() -> None:
    """A free gate without `gate_values` is left out; a held one is sigmoid of its bias."""
    cell = ForeignCell(DeclaredLSTM(2, 3).double())
    x, state = normal(4, 2), (normal(4, 3), normal(4, 3, seed=1))
    assert cell.step(x, state).gates == {}
    hold_(cell, forget=0.9)
    step = cell.step(x, state)
    assert set(step.gates) == {"input", "forget", "output"}
    torch.testing.assert_close(step["forget"], torch.full((4, 3), 0.9).double())


# form


@pytest.mark.parametrize(
    ("module", "inputs", "parts", "sizes"),
    [
        (Plain(4, 6), 4, ("h",), (6,)),
        (SilentLSTM(2, 3), 2, ("h", "c"), (3, 3)),
        (SilentLSTM(7, 2), 7, ("h", "c"), (2, 2)),
        (nn.GRUCell(3, 4), 3, ("h",), (4,)),
        (nn.LSTMCell(3, 4), 3, ("h", "c"), (4, 4)),
        (TextbookGRUCell(4, 5), 4, ("h",), (5,)),
        (MinimalGatedUnit(2, 3), 2, ("h",), (3,)),
        (ThreeParts(), 2, ("fast", "slow", "count"), (3, 4, 1)),
        (naive_sigmoid_cell.make_cell(), 2, ("h", "c"), (3, 3)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_the_form_is_found(
    module: nn.Module, inputs: int, parts: tuple[str, ...], sizes: tuple[int, ...]
) -> None:
    """Widths, parts and the call form: from what the module says, else from what it answers to."""
    cell = ForeignCell(module)
    assert (cell.input_size, cell.parts, cell.part_sizes) == (inputs, parts, sizes)
    assert isinstance(cell, CellLike)
    step = cell.step(torch.zeros(2, inputs).to(cell.dtype), cell.initial_state(2))
    assert [part.shape for part in step.state] == [(2, size) for size in sizes]
    assert cell.linearize(cell.drive(torch.zeros(1, 2, inputs)), step.state) is None
    assert cell.notes == ()


def test_four_parts_are_found_without_a_word() -> None:
    """A silent module of four equal parts is tried with one, two, three and four."""

    class Four(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(9, 5)

        def forward(self, x: Tensor, state: tuple[Tensor, ...]) -> list[Tensor]:
            a, b, c, d = state
            return [b, c, d, torch.tanh(self.lin(torch.cat([x, a], dim=1)))]

    cell = ForeignCell(Four())
    assert (cell.parts, cell.part_sizes, cell.input_size) == (("s0", "s1", "s2", "s3"), (5,) * 4, 4)
    assert str(cell.form) == "cell(x, (s0, s1, s2, s3))"


def test_a_tuple_of_one_part_stays_a_tuple() -> None:
    """initial_state tells whether the one part is handed over bare."""

    class Wrapped(Plain):
        def initial_state(self, batch: int) -> tuple[Tensor]:
            return (torch.zeros(batch, self.hidden_size),)

        def forward(self, x: Tensor, state: tuple[Tensor]) -> tuple[Tensor]:
            (h,) = state
            return (self.mix(x, h),)

    cell = ForeignCell(Wrapped())
    assert str(cell.form) == "cell(x, (h,))"
    # around it, torch's form for one part is a tensor
    assert cell(torch.ones(4, 2), torch.zeros(4, 3)).shape == (4, 3)


def test_state_size_tells_widths_that_differ() -> None:
    """One whole number is one part; a tuple is a part each."""

    class Two(nn.Module):
        input_size = 2
        state_size = (3, 5)
        parts = ("small", "large")

        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(2 + 5, 3)
            self.back = nn.Linear(3, 5)

        def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
            small = torch.tanh(self.lin(torch.cat([x, state[1]], dim=1)))
            return small, state[1] + self.back(state[0])

    cell = ForeignCell(Two())
    assert (cell.parts, cell.part_sizes) == (("small", "large"), (3, 5))
    assert (cell.kept_part, cell.hidden_size) == ("small", 3)
    Two.state_size = 3
    with pytest.raises(CellLoadError, match=r"names 2 parts.*small, large.*widths for 1"):
        ForeignCell(Two())


def test_a_cell_of_any_width_takes_the_widths_it_is_given() -> None:
    """Without weights nothing ties the widths down: the caller's are taken."""

    class Leaky(nn.Module):
        def forward(self, x: Tensor, h: Tensor) -> Tensor:
            return 0.9 * h + 0.1 * x.mean(dim=1, keepdim=True)

    with pytest.raises(CellLoadError, match=r"(?s)several work.*self.input_size and self.hidden"):
        ForeignCell(Leaky())
    free = ForeignCell(Leaky(), sizes_if_free=(2, 64))
    told = ForeignCell(Leaky(), input_size=2, hidden_size=64)
    assert (free.input_size, free.part_sizes) == (told.input_size, told.part_sizes) == (2, (64,))
    assert (free.dtype, free.device) == (torch.get_default_dtype(), torch.device("cpu"))


def test_lazy_layers_get_the_widths_that_the_module_tells() -> None:
    """Trying would fix a lazy layer at a wrong width, so it must tell; then it works."""

    class Lazy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.LazyLinear(4)

        def forward(self, x: Tensor, h: Tensor) -> Tensor:
            return torch.tanh(self.lin(torch.cat([x, h], dim=1)))

    with pytest.raises(CellLoadError, match=r"lazy layers.*must tell"):
        ForeignCell(Lazy())
    cell = ForeignCell(Lazy(), input_size=3, hidden_size=4)
    assert cell.get_parameter("lin.weight").shape == (4, 7)


def test_layers_of_the_names_we_read_are_only_layers() -> None:
    """A layer called gates, parts or state_size declares nothing."""

    class Named(Plain):
        def __init__(self) -> None:
            super().__init__()
            self.gates = nn.Linear(2, 3)
            self.parts = nn.Linear(2, 3)
            self.state_size = nn.Linear(2, 3)
            self.kept_part = nn.Linear(2, 3)
            self.kind = nn.Linear(2, 3)

    cell = ForeignCell(Named())
    assert (cell.gates, cell.parts, cell.kind) == ((), ("h",), "Named")
    assert "gates.weight" in dict(cell.named_parameters())


# sharing


def test_parameters_have_the_users_names_and_are_shared() -> None:
    """A wrapper adds no prefix, and a change of one is a change of the other."""
    module = Plain()
    cell = ForeignCell(module)
    assert list(cell.state_dict()) == list(module.state_dict()) == ["lin.weight", "lin.bias"]
    with torch.no_grad():
        cell.get_parameter("lin.bias").fill_(3.0)
    assert torch.all(module.lin.bias == 3.0)
    cell.double()
    assert cell.dtype == module.lin.weight.dtype == torch.float64
    cell.train()
    assert module.training
    cell.eval()
    assert not module.lin.training


def test_functional_call_takes_the_users_names() -> None:
    """torch.func can put other weights in the place of the module's."""
    cell = ForeignCell(Plain().double())
    zeros = {name: torch.zeros_like(value) for name, value in cell.named_parameters()}
    arguments = (normal(2, 2), normal(2, 3))
    assert not torch.any(torch.func.functional_call(cell, zeros, arguments))
    assert torch.any(cell(*arguments))


@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_a_copy_is_a_cell_of_its_own(way: str) -> None:
    """Copies share their registers with their own module, and nothing with the first."""
    cell = ForeignCell(nn.LSTMCell(2, 3))
    twin = copy.deepcopy(cell) if way == "deepcopy" else pickle.loads(pickle.dumps(cell))
    hold_weight = twin.get_parameter("weight_hh")
    with torch.no_grad():
        hold_weight.zero_()
    twin.half()
    assert not torch.any(twin.module.weight_hh)
    assert twin.module.weight_hh.dtype == twin.dtype == torch.float16
    assert torch.any(cell.module.weight_hh)
    assert cell.dtype == torch.float32
    assert (twin.form, twin.notes, twin.kept_part) == (cell.form, cell.notes, cell.kept_part)


def test_a_module_that_moves_tensors_of_its_own_is_asked_to() -> None:
    """`to` goes through the module, whose own `_apply` may convert a plain attribute."""

    class Carrying(Plain):
        def __init__(self) -> None:
            super().__init__()
            self.constant = torch.ones(3)

        def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
            self.constant = fn(self.constant)
            return super()._apply(fn, recurse)

        def forward(self, x: Tensor, h: Tensor) -> Tensor:
            return self.mix(x, h) * self.constant

    cell = ForeignCell(Carrying()).double()
    assert cell.step(normal(2, 2), cell.initial_state(2))["h"].dtype == torch.float64


def test_wrapping_leaves_no_trace() -> None:
    """Trials run on a copy and outside of the global generator."""

    class Counting(Plain):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: Tensor, h: Tensor) -> Tensor:
            self.calls += 1
            return self.mix(x, h)

    module = Counting()
    torch.manual_seed(0)
    expected = torch.get_rng_state()
    ForeignCell(module)
    assert module.calls == 0
    assert torch.equal(torch.get_rng_state(), expected)


def test_gradients_reach_the_parameters() -> None:
    """A step is differentiable by the user's weights and by the state."""
    cell = ForeignCell(Plain().double())
    h = normal(2, 3).requires_grad_()
    cell.step(normal(2, 2), (h,))["h"].sum().backward()
    assert torch.any(h.grad)
    assert all(torch.any(parameter.grad) for parameter in cell.parameters())


# notes


def test_dropout_is_off_and_said_so() -> None:
    """A module in training mode is put into evaluation mode; where that matters there is a note."""

    class Dropping(Plain):
        def __init__(self) -> None:
            super().__init__()
            self.drop = nn.Dropout(0.5)

        def forward(self, x: Tensor, h: Tensor) -> Tensor:
            return self.drop(self.mix(x, h))

    module = Dropping()
    (note,) = ForeignCell(module).notes
    assert "evaluation mode" in note
    assert "dropout" in note
    assert not module.training
    assert ForeignCell(module).notes == ()  # it was in evaluation mode already


def test_batch_norm_uses_its_running_statistics() -> None:
    """In evaluation mode the rows of a batch norm do not see each other, so it is a cell."""

    class Normed(Plain):
        def __init__(self, **options: bool) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(3, **options)

        def forward(self, x: Tensor, h: Tensor) -> Tensor:
            return self.norm(self.mix(x, h))

    module = Normed()
    (note,) = ForeignCell(module).notes
    assert "evaluation mode" in note
    assert module.norm.num_batches_tracked == 0
    with pytest.raises(CellLoadError, match=r"rows of a batch see each other.*batch norm"):
        ForeignCell(Normed(track_running_stats=False))


def test_a_state_that_is_cut_off_is_noted() -> None:
    """A detached state is measured (all zeros), with a word on why."""

    class Cut(Plain):
        def forward(self, x: Tensor, h: Tensor) -> Tensor:
            return self.mix(x, h.detach())

    class Blind(Plain):
        def forward(self, x: Tensor, h: Tensor) -> Tensor:
            return self.mix(x, torch.zeros_like(h))

    for module in (Cut(), Blind()):
        (note,) = ForeignCell(module).notes
        assert "no way from the old state to the new one" in note
    frozen = Cut().requires_grad_(False)
    assert len(ForeignCell(frozen).notes) == 1


def test_gates_declared_at_another_gates_rows_are_noticed() -> None:
    """With rows i and f swapped, a "held" forget gate does not multiply c: the note says so."""
    assert ForeignCell(DeclaredLSTM()).notes == ()
    (note,) = ForeignCell(DeclaredLSTM(forget_block=0)).notes
    assert "keep gate 'forget' leaves 0.5 of c per step, not 0.3" in note
    assert "another gate's" in note


def test_a_constant_added_to_a_gate_is_noticed() -> None:
    """A forget bias written into forward (as some libraries do) moves a held gate."""

    class Shifted(DeclaredLSTM):
        def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
            h, c = state
            i, f, g, o = self.lin(torch.cat([x, h], dim=1)).chunk(4, dim=1)
            c = torch.sigmoid(f + 1.0) * c + torch.sigmoid(i) * torch.tanh(g)
            return torch.sigmoid(o) * torch.tanh(c), c

    (note,) = ForeignCell(Shifted()).notes
    assert "not 0.3" in note


# printing


def test_what_a_module_prints_can_be_kept_off_standard_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Loaded by a command, a chatty module talks to standard error; in a notebook, as usual."""

    class Chatty(Plain):
        def forward(self, x: Tensor, h: Tensor) -> Tensor:
            print("step")  # noqa: T201
            return self.mix(x, h)

    arguments = torch.ones(2, 2), (torch.ones(2, 3),)
    quiet = ForeignCell(Chatty(), prints_to_stderr=True)
    quiet.step(*arguments)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "step" in captured.err
    cell = ForeignCell(Chatty())
    capsys.readouterr()
    cell.step(*arguments)
    assert capsys.readouterr().out == "step\n"


def test_a_compiled_module_is_measured_uncompiled() -> None:
    """torch.compile wraps a module and prefixes its names; the one inside is measured."""

    class Compiled(nn.Module):  # as torch.compile's own wrapper, which takes seconds to import
        def __init__(self, module: nn.Module) -> None:
            super().__init__()
            self._orig_mod = module

    module = Plain()
    cell = ForeignCell(Compiled(module))
    assert cell.module is module
    assert list(cell.state_dict()) == ["lin.weight", "lin.bias"]


def test_gates_may_be_declared_as_objects() -> None:
    """A list of Gate says the same as a list of dicts."""
    module = DeclaredLSTM(2, 3)
    module.gates = [
        Gate("forget", "keep", (Rows("lin.bias", slice(3, 6)),), (Rows("lin.weight", slice(3, 6)),))
    ]
    cell = ForeignCell(module)
    assert cell.keep_gate == module.gates[0]
    assert cell.candidate_gate is None
    assert cell.notes == ()


def test_an_error_of_a_call_names_the_line() -> None:
    """What fails later, on numbers that no trial had, is told as the user's own line."""

    class Touchy(Plain):
        def forward(self, x: Tensor, h: Tensor) -> Tensor:
            if not torch.jit.is_tracing() and x.shape[0] == 5:
                raise ValueError("five rows are too many")
            return self.mix(x, h)

    cell = ForeignCell(Touchy())
    with pytest.raises(CellCallError, match=r"ValueError: five rows.*test_foreign.py:\d+\)"):
        cell.step(torch.ones(5, 2), (torch.ones(5, 3),))


def test_a_wrapped_lstm_is_our_lstm() -> None:
    """The same weights in torch's module behind the wrapper and in our white box."""
    module = nn.LSTMCell(2, 3).double()
    own, foreign = LSTM.from_torch(module), ForeignCell(module)
    x, state = normal(20, 2, 2), (normal(2, 3), normal(2, 3, seed=1))
    one, other = jacobian_norms(own, x, state), jacobian_norms(foreign, x, state)
    cases.assert_same_log_norm(one.log_norm, other.log_norm)


def test_weights_save_and_load() -> None:
    """A state_dict saved from the module loads into the wrapper."""
    buffer = io.BytesIO()
    module = Plain()
    torch.save(module.state_dict(), buffer)
    buffer.seek(0)
    cell = ForeignCell(Plain())
    cell.load_state_dict(torch.load(buffer, weights_only=True))
    assert torch.equal(cell.module.lin.weight, module.lin.weight)
