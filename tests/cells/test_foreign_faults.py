"""Modules that are no cells: each fault is told apart, in one to three lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradflow.cells import ForeignCell
from gradflow.errors import CellLoadError
from tests.cells.user_modules import DeclaredLSTM, MinimalGatedUnit, Plain, SilentLSTM

pytestmark = pytest.mark.usefixtures("unchecked_annotations")

Forward = Callable[[Any, Tensor, Any], Any]


def plain(forward: Forward, **attributes: object) -> nn.Module:
    """Return a module of told widths (2, 3) with this forward."""
    made: nn.Module = type("Mine", (Plain,), {"forward": forward, **attributes})()
    return made


def noisy(self: Any, x: Tensor, h: Tensor) -> Tensor:
    """Draw dropout whatever the mode, as nn.functional.dropout does by default."""
    return nn.functional.dropout(self.mix(x, h))


class Remembering(Plain):
    """A cell with a memory beside its state."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """Return the state, which depends on how often it was asked."""
        self.seen += 1
        return self.mix(x, h) / self.seen


ANSWERS: list[tuple[Forward, str]] = [
    (lambda s, x, h: None, r"cell\(x, h\) must return the new h.*got None. Is a return missing"),
    (lambda s, x, h: (s.mix(x, h), h), r"got a tuple of 2 \(Tensor, Tensor\).*\(output, state\)"),
    (lambda s, x, h: (s.mix(x, h), (h,)), r"got a tuple of 2 \(Tensor, tuple\)"),
    (lambda s, x, h: s.mix(x, h).tolist(), "got a list of 7"),
    (lambda s, x, h: {"h": s.mix(x, h)}, "got a dict"),
    (lambda s, x, h: s.mix(x, h).detach().numpy(), "got a ndarray. NumPy arrays carry no gradient"),
    (lambda s, x, h: s.mix(x, h)[0], r"of the old one's shape \(7, 3\).*got \(3,\)"),
    (lambda s, x, h: s.mix(x, h).T, r"shape \(7, 3\).*got \(3, 7\)"),
    (lambda s, x, h: s.mix(x, h).sum(), r"got \(\)"),
    (lambda s, x, h: s.mix(x, h).double(), "dtype torch.float32; got torch.float64"),
    (lambda s, x, h: s.mix(x, h).to_sparse(), "dense on cpu; got one that is torch.sparse_coo on"),
    (lambda s, x, h: s.mix(x, h).to("meta"), "dense on cpu; got one that is dense on meta"),
    (
        lambda s, x, h: s.lin(x),
        r"cell\(x, h\) failed: RuntimeError: mat1 and mat2.*faults.py:\d+\)",
    ),
    (lambda s, x, h: s.nothing(x), "AttributeError: .*no attribute 'nothing'.*faults.py"),
    (lambda s, x, h: int("x"), "ValueError: invalid literal"),
    (lambda s, x, h: exit(3), r"sys.exit\(3\)"),
    (lambda s, x: x, r"TypeError: .*takes 2 positional arguments but 3 were given"),
    (noisy, "gives two answers.*draws random numbers or keeps a memory"),
    (lambda s, x, h: s.mix(x, h.mul_(0.5)), r"changes its argument h in place.*h = h.clone\(\)"),
    (lambda s, x, h: s.mix(x.add_(1), h), "changes its argument x in place"),
    (lambda s, x, h: s.mix(x, h - h.mean(0)), "lets the rows of a batch see each other.*axis 0"),
    (lambda s, x, h: s.mix(x, h.softmax(0)), "rows of a batch see each other"),
    (lambda s, x, h: s.mix(x, h.cumsum(0)), "rows"),
    (lambda s, x, h: s.mix(x, h).squeeze(), r"with one row alone.*got \(3,\).*squeeze"),
    (lambda s, x, h: s.mix(x, h) * (1 + (len(x) == 1)), "answers otherwise for one row alone"),
    (lambda s, x, h: s.mix(x, h / h.norm(dim=1, keepdim=True)), "is NaN in h.*zero input"),
    (lambda s, x, h: s.mix(x, h) + 1 / h.abs().sum(1, True), "is infinite in h.*zero input"),
    (lambda s, x, h: s.mix(x, h) + h.sqrt(), "is NaN in h.*random input and state of unit size"),
]


@pytest.mark.parametrize(("forward", "words"), ANSWERS)
def test_what_is_wrong_with_an_answer(forward: Forward, words: str) -> None:
    """The message names the call form, what came, and what mostly is the cause."""
    with pytest.raises(CellLoadError, match=f"(?s){words}") as caught:
        ForeignCell(plain(forward))
    assert len(str(caught.value).splitlines()) <= 3


def test_a_memory_beside_the_state_is_noticed() -> None:
    """A cell that counts its calls has no Jacobian."""
    with pytest.raises(CellLoadError, match=r"keeps a memory of its own"):
        ForeignCell(Remembering())


def test_an_lstm_that_returns_too_few_parts() -> None:
    """Two parts go in, so two come out."""

    class Half(SilentLSTM):
        input_size, hidden_size = 2, 3

        def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> Any:
            return super().forward(x, state)[:1]

    with pytest.raises(CellLoadError, match=r"new state, 2 tensors \(h, c\); got a tuple of 1"):
        ForeignCell(Half())


def test_a_fault_of_a_silent_module_is_found_behind_the_misfits() -> None:
    """Among hundreds of tries at other widths, the one that says most is shown."""

    class Broken(SilentLSTM):
        def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> Any:
            h, c = super().forward(x, state)
            return h + self.typo, c

    with pytest.raises(CellLoadError, match=r"(?s)does not tell its widths.*no attribute 'typo'"):
        ForeignCell(Broken())

    class Nothing(SilentLSTM):
        def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> Any:
            super().forward(x, state)

    with pytest.raises(CellLoadError, match=r"(?s)does not tell its widths.*Is a return missing"):
        ForeignCell(Nothing())


def test_a_nan_among_the_weights_is_told_by_name() -> None:
    """Before anything runs: which parameter, and how many of its entries."""
    module = Plain()
    with torch.no_grad():
        module.lin.weight[0, :2] = float("nan")
    with pytest.raises(CellLoadError, match=r"'lin.weight' is not finite.*2 of 15 entries"):
        ForeignCell(module)


def test_a_derivative_that_fails_is_told() -> None:
    """A value may be fine while autograd cannot go back through the way to it."""

    class Overwriting(Plain):
        def forward(self, x: Tensor, h: Tensor) -> Tensor:
            new = self.mix(x, h)
            kept = new.exp()
            kept.mul_(2)
            return kept

    with pytest.raises(CellLoadError, match=r"cannot be differentiated.*inplace operation"):
        ForeignCell(Overwriting())


def test_gates_that_fail_to_be_told() -> None:
    """`gates` may be a property, and its errors are the user's."""

    class Failing(Plain):
        @property
        def gates(self) -> list[object]:
            return {}["gone"]

    with pytest.raises(CellLoadError, match=r"Failing.gates failed: KeyError.*faults.py"):
        ForeignCell(Failing())


def test_complex_weights_are_refused() -> None:
    """States and their norms are real."""
    module = Plain()
    module.phase = nn.Parameter(torch.ones(3, dtype=torch.complex64))
    with pytest.raises(CellLoadError, match=r"real numbers; parameter 'phase' is complex"):
        ForeignCell(module)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (lambda self, batch: None, "must return a tensor or a tuple of tensors.*got NoneType"),
        (lambda self, batch: (), "got tuple"),
        (lambda self, batch: torch.zeros(self.hidden_size), r"shape \(7, width\); got \(3,\)"),
        (lambda self, batch: torch.zeros(1, 3), r"shape \(7, width\); got \(1, 3\)"),
        (lambda self, batch: (torch.zeros(batch, 3, 3),), r"got \(7, 3, 3\).*flatten\(1\)"),
        (lambda self, batch: ([0.0],), "got list"),
        (lambda self: torch.zeros(1, 3), r"initial_state\(7\) failed: TypeError"),
    ],
)
def test_what_is_wrong_with_a_first_state(state: Callable[..., Any], words: str) -> None:
    """initial_state(batch) returns a (batch, width) tensor per part."""
    with pytest.raises(CellLoadError, match=words):
        ForeignCell(plain(Plain.forward, initial_state=state))


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"parts": ("h", "h")}, "different names"),
        ({"parts": ("joint",)}, "none is 'joint'"),
        ({"parts": ()}, "different names"),
        ({"state_size": (0,)}, "1 or more; Mine has"),
        ({"state_size": (3, 3), "parts": ("h",)}, "names 1 parts.*widths for 2"),
        ({"kept_part": "x"}, "no part 'x' to keep. Known: h"),
    ],
)
def test_what_is_wrong_with_a_declaration(attributes: dict[str, object], words: str) -> None:
    """Names and widths of parts fit each other."""
    with pytest.raises(CellLoadError, match=words):
        ForeignCell(plain(Plain.forward, **attributes))


@pytest.mark.parametrize(
    ("show", "words"),
    [
        (lambda self, x, h: None, "must return a dict of tensors.*got NoneType"),
        (lambda self, x, h: {"update": 0.5}, r"\(batch, width\).*'update' is float"),
        (lambda self, x, h: {"update": h[0]}, r"7 rows; 'update' is \(3,\)"),
        (lambda self, x, h: {"updat": h}, "'updat' not declared. Did you mean 'update'"),
        (lambda self, x, h: {"update": x}, "'update' multiplies.*3 wide; the gate is 2 wide"),
        (lambda self, x, h: {"update": self.gone}, r"gate_values\(x, state\) failed: Attribute"),
    ],
)
def test_what_is_wrong_with_shown_gates(show: Callable[..., Any], words: str) -> None:
    """gate_values returns a dict of (batch, width) tensors under declared names."""
    module = type("Mine", (MinimalGatedUnit,), {"gate_values": show})(2, 3)
    with pytest.raises(CellLoadError, match=words):
        ForeignCell(module)


def test_a_keep_gate_of_another_width_is_refused() -> None:
    """A gate of two rows cannot multiply a state of three."""
    module = DeclaredLSTM(2, 3)
    module.gates[1] |= {"bias": "lin.bias[3:5]", "weights": "lin.weight[3:5]"}
    with pytest.raises(CellLoadError, match=r"'forget' multiplies.*3 wide; the gate is 2 wide"):
        ForeignCell(module)


@pytest.mark.parametrize("what", [lambda x, h: h, "cell", None, Plain])
def test_only_a_module_is_wrapped(what: Any) -> None:
    """A function, a name, a class: the words say how to make a module of it."""
    with pytest.raises(CellLoadError, match=r"a cell is a torch.nn.Module; got a"):
        ForeignCell(what)


def test_told_widths_that_are_wrong() -> None:
    """The widths that were tried are in the message."""

    class Untold(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(5, 3)

        def forward(self, x: Tensor, h: Tensor) -> Tensor:
            return torch.tanh(self.lin(torch.cat([x, h], dim=1)))

    with pytest.raises(CellLoadError, match=r"does not work as a cell with x 4 wide and a state 8"):
        ForeignCell(Untold(), input_size=4, hidden_size=8)
