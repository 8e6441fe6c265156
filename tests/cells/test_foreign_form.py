"""How a user's module is called: widths, parts and gates, told or found out."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from gradflow.cells import CellLike, ForeignCell, Gate, Rows
from gradflow.errors import CellLoadError
from tests.cells.user_modules import (
    DeclaredLSTM,
    MinimalGatedUnit,
    Plain,
    SilentLSTM,
    ThreeParts,
)
from tests.data import naive_sigmoid_cell
from tests.reference.textbook_gru import TextbookGRUCell


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
