"""torch's layers, taken apart: every level and direction is a cell that computes as it did."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import gradflow
from gradflow.cells import GRU, LSTM, RNN, CellLike, ForeignCell
from gradflow.checkpoints import from_torch
from gradflow.errors import CellLoadError

LAYERS = {
    "lstm": lambda **options: nn.LSTM(3, 4, **options),
    "gru": lambda **options: nn.GRU(3, 4, **options),
    "rnn": lambda **options: nn.RNN(3, 4, **options),
    "relu": lambda **options: nn.RNN(3, 4, nonlinearity="relu", **options),
    "projected": lambda **options: nn.LSTM(3, 4, proj_size=2, **options),
}
each_layer = pytest.mark.parametrize("name", LAYERS)


def run(cell: CellLike, x: Tensor, *, backwards: bool) -> Tensor:
    """Return h of every step from the zero state, (time, batch, width), in the input's order."""
    state = cell.initial_state(x.shape[1])
    hidden = []
    for row in reversed(x.unbind(0)) if backwards else x.unbind(0):
        state = cell.step(row, state).state
        hidden.append(state[0])
    return torch.stack(hidden[::-1] if backwards else hidden)


def run_levels(cells: list[CellLike], x: Tensor, directions: int) -> Tensor:
    """Stack the cells level by level, as torch's layer does."""
    for first in range(0, len(cells), directions):
        pair = cells[first : first + directions]
        both = [run(cell, x, backwards=bool(index)) for index, cell in enumerate(pair)]
        x = torch.cat(both, dim=-1)
    return x


@each_layer
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("levels", "directions"), [(1, 1), (3, 1), (1, 2), (2, 2)])
def test_the_cells_together_are_the_layer(
    name: str, bias: bool, levels: int, directions: int
) -> None:
    """Run level by level, the second direction from the end, they give the layer's output."""
    layer = LAYERS[name](bias=bias, num_layers=levels, bidirectional=directions == 2).double()
    cells = from_torch(layer)
    assert len(cells) == levels * directions
    x = torch.randn(5, 2, 3).double()
    with torch.no_grad():
        torch.testing.assert_close(
            run_levels(cells, x, directions), layer(x)[0], rtol=1e-10, atol=1e-12
        )


@each_layer
def test_batch_first_and_dropout_are_not_the_cells(name: str) -> None:
    """The same weights with another layout and dropout are the same cells."""
    layer = LAYERS[name](num_layers=2)
    other = LAYERS[name](num_layers=2, batch_first=True, dropout=0.5)
    other.load_state_dict(layer.state_dict())
    for one, two in zip(from_torch(layer), from_torch(other), strict=True):
        assert one.state_dict().keys() == two.state_dict().keys()
        assert all(
            torch.equal(one.state_dict()[key], two.state_dict()[key]) for key in one.state_dict()
        )


def test_kinds_and_variants_are_kept() -> None:
    """Each torch module becomes its own kind of cell, relu and tanh told apart."""
    kinds = {
        LSTM: [nn.LSTM(2, 3), nn.LSTMCell(2, 3)],
        GRU: [nn.GRU(2, 3), nn.GRUCell(2, 3)],
        RNN: [nn.RNN(2, 3), nn.RNNCell(2, 3)],
    }
    for kind, modules in kinds.items():
        for module in modules:
            (cell,) = from_torch(module)
            assert type(cell) is kind
    for module in (nn.RNN(2, 3, nonlinearity="relu"), nn.RNNCell(2, 3, nonlinearity="relu")):
        assert from_torch(module)[0].nonlinearity == "relu"
    assert from_torch(nn.GRU(2, 3))[0].reset == "after"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
@each_layer
def test_the_dtype_is_kept(name: str, dtype: torch.dtype) -> None:
    """Half precision stays half precision."""
    for cell in from_torch(LAYERS[name]().to(dtype)):
        assert cell.dtype == dtype


def test_weights_are_copied() -> None:
    """Holding a gate of the cells leaves the user's layer as it is."""
    layer = nn.LSTM(2, 3)
    before = layer.weight_hh_l0.clone()
    gradflow.hold_(from_torch(layer)[0], forget=0.9)
    assert torch.equal(layer.weight_hh_l0, before)


def test_computed_weights_come_as_they_are_now() -> None:
    """Under weight_norm and orthogonal parametrizations the effective matrix is taken."""
    layer = nn.LSTM(3, 4).double()
    nn.utils.parametrizations.weight_norm(layer, "weight_hh_l0")
    x = torch.randn(5, 2, 3).double()
    with torch.no_grad():
        torch.testing.assert_close(
            run(from_torch(layer)[0], x, backwards=False), layer(x)[0], rtol=1e-10, atol=1e-12
        )


def test_a_projection_keeps_its_gates() -> None:
    """h is 2 wide and c is 4; the forget gate can be held, on c."""
    (cell,) = from_torch(nn.LSTM(3, 4, proj_size=2).double())
    assert isinstance(cell, ForeignCell)
    assert (cell.part_sizes, cell.kept_part, cell.keep_gate.name) == ((2, 4), "c", "forget")
    gradflow.hold_(cell, forget=0.9)
    c = torch.randn(2, 4).double()
    step = cell.step(torch.randn(2, 3).double(), (torch.randn(2, 2).double(), c))
    torch.testing.assert_close(step["c"], 0.9 * c)


def test_what_is_a_cell_already_stays_one() -> None:
    """A cell of ours, or a user's wrapped one, is a list of itself."""
    for cell in (LSTM(2, 3), ForeignCell(nn.GRUCell(2, 3))):
        assert from_torch(cell) == [cell]


def test_it_is_in_the_library() -> None:
    """gradflow.from_torch is this function."""
    assert gradflow.from_torch is from_torch


def test_a_model_is_refused_with_the_layers_inside_it() -> None:
    """The words name what could be given, as one would write it."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Linear(2, 2)
            self.encoder = nn.ModuleDict({"rnn": nn.LSTM(2, 3)})

    with pytest.raises(
        CellLoadError, match=r"(?s)got Model.*encoder.rnn \(nn.LSTM\).*model.encoder.rnn"
    ):
        from_torch(Model())


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.Linear(2, 3), r"(?s)takes nn.RNN, nn.LSTM.*got Linear.*ForeignCell\(module\)"),
        (nn.LSTM(2, 3).state_dict(), r"takes a torch module.*got a OrderedDict"),
        (None, r"got a NoneType"),
    ],
)
def test_anything_else_is_refused(module: object, words: str) -> None:
    """Another module, weights without a module, nothing."""
    with pytest.raises(CellLoadError, match=words):
        from_torch(module)
