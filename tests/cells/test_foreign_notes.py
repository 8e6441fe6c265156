"""What a user is told of a module: notes where it is measured otherwise, prints, faults."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from gradflow.cells import ForeignCell
from gradflow.errors import CellCallError, CellLoadError
from tests.cells.user_modules import DeclaredLSTM, Plain


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


def test_an_error_of_a_call_names_the_line() -> None:
    """What fails later, on numbers that no trial had, is told as the user's own line."""

    class Touchy(Plain):
        def forward(self, x: Tensor, h: Tensor) -> Tensor:
            if not torch.jit.is_tracing() and x.shape[0] == 5:
                raise ValueError("five rows are too many")
            return self.mix(x, h)

    cell = ForeignCell(Touchy())
    with pytest.raises(CellCallError, match=r"ValueError: five rows.*test_foreign_notes.py:\d+\)"):
        cell.step(torch.ones(5, 2), (torch.ones(5, 3),))
