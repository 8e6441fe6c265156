"""The two sides of `gradflow parity`, read from what a user writes or hands over.

    lstm, gru, gru-before, rnn, rnn-relu          ours; also any registered cell
    torch.LSTMCell, torch.GRU, torch.RNN-relu     torch's cells and fused layers
    numpy.lstm, numpy.gru-before, ...             the NumPy twins, their backward by hand
    file.py:name, package.module:name             a module, what makes one, or a step function
    weights.pt, tensors.npz, io.npz               one layer's weights, or a recording (x, y)

In Python a side may also be the thing itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import io
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from gradflow.cells import CellLike, ForeignCell, cell_names, make_cell
from gradflow.cells.base import Cell
from gradflow.cells.call_form import CallForm
from gradflow.cells.find_form import find_form
from gradflow.cells.numpy_cells import NumpyCell, NumpyGRU, NumpyLSTM, NumpyRNN
from gradflow.checkpoints.sides.file_side import file_side
from gradflow.checkpoints.sides.function_side import function_side
from gradflow.checkpoints.sides.loose_calls import loose_cell
from gradflow.checkpoints.sides.module_side import LayerSide, ModuleSide
from gradflow.checkpoints.sides.numpy_side import NumpySide
from gradflow.checkpoints.sides.protocol import Side
from gradflow.checkpoints.sides.sequence_side import sequence_side
from gradflow.checkpoints.sides.signature import looks_like_step
from gradflow.checkpoints.sides.swapping import float64_copy
from gradflow.checkpoints.sides.tensor_files import is_tensor_file, read_tensors
from gradflow.checkpoints.user_cells import make_from_place
from gradflow.checkpoints.user_files import is_place, load_object
from gradflow.errors import CellLoadError, UnknownNameError, nearest_name

DEFAULT_SIZES = (3, 5)  # no two widths alike, so that shapes tell what they can

_TORCH_CELLS: dict[str, Callable[..., nn.Module]] = {
    "torch.lstmcell": nn.LSTMCell,
    "torch.grucell": nn.GRUCell,
    "torch.rnncell": nn.RNNCell,
    "torch.lstm": nn.LSTM,
    "torch.gru": nn.GRU,
    "torch.rnn": nn.RNN,
}
_NUMPY_CELLS: dict[str, type[NumpyCell]] = {
    "numpy.lstm": NumpyLSTM,
    "numpy.gru": NumpyGRU,
    "numpy.rnn": NumpyRNN,
}
# What may follow a name, and the option that it means.
_VARIANTS: dict[str, dict[str, str]] = {
    "-before": {"reset": "before"},
    "-after": {"reset": "after"},
    "-relu": {"nonlinearity": "relu"},
    "-tanh": {"nonlinearity": "tanh"},
}
SIDE_NAMES = (
    *("lstm", "gru", "gru-before", "rnn", "rnn-relu"),
    *("torch.LSTMCell", "torch.GRUCell", "torch.RNNCell", "torch.RNNCell-relu"),
    *("torch.LSTM", "torch.GRU", "torch.RNN", "torch.RNN-relu"),
    *("numpy.lstm", "numpy.gru", "numpy.gru-before", "numpy.rnn", "numpy.rnn-relu"),
)


@dataclasses.dataclass(frozen=True)
class Widths:
    """How wide a side is made where it leaves that open."""

    input_size: int = DEFAULT_SIZES[0]
    hidden_size: int = DEFAULT_SIZES[1]


def read_side(asked: object, widths: Widths, *, name: str | None = None) -> Side:
    """Return one side of a parity question.

    Args:
        asked: a name, a place or a file, as text; or the thing itself: a torch module, a cell, a
            NumPy cell, a step function, a mapping of tensors.
        widths: for what has no widths of its own.
        name: what to call it; the text, or the type's or function's name, where None.

    Raises:
        UnknownNameError: no such name; CellLoadError: it cannot be loaded, or is no recurrence.
    """
    if not isinstance(asked, str):
        return _side_of_object(asked, widths, name or _name_of(asked))
    try:
        return _side_of_text(asked.strip(), widths)
    except CellLoadError as error:
        said = asked in str(error).partition("\n")[0]
        raise CellLoadError(str(error) if said else f"{asked}: {error}") from error


def side_name(asked: object) -> str:
    """Return what a side is called: the text it was asked by, or its type's or function's name."""
    return asked.strip() if isinstance(asked, str) else _name_of(asked)


def torch_twin_name(kind: str) -> str:
    """Return the name of torch's cell of a kind: "torch.LSTMCell"."""
    return f"torch.{kind.upper()}Cell"


def _name_of(asked: object) -> str:
    name = getattr(asked, "__name__", None)
    return name if isinstance(name, str) else type(asked).__name__


def _side_of_text(asked: str, widths: Widths) -> Side:
    if is_tensor_file(asked):
        return file_side(read_tensors(asked), name=asked)
    if is_place(asked):
        found = load_object(asked)
        if looks_like_step(found) and not isinstance(found, nn.Module):
            return _side_of_object(found, widths, asked)
        made, told = make_from_place(asked, dataclasses.asdict(widths), {"dtype": torch.float64})
        return _side_of_object(made, widths, asked, told)
    return _side_of_name(asked, widths)


def _side_of_name(asked: str, widths: Widths) -> Side:
    plain, options = (asked, {}) if asked in cell_names() else _split_name(asked)
    sizes = (widths.input_size, widths.hidden_size)
    if plain in _NUMPY_CELLS:
        return NumpySide(_NUMPY_CELLS[plain].random(*sizes, **options), name=asked)
    if plain in _TORCH_CELLS and "reset" in options:
        raise UnknownNameError(
            f"torch has no GRU with the reset gate before the matrix product; {asked!r} does not "
            "exist. Use gru-before or numpy.gru-before."
        )
    if plain in _TORCH_CELLS:
        module: object = _TORCH_CELLS[plain](*sizes, **options, dtype=torch.float64)
    elif plain in cell_names():
        module = make_cell(plain, *sizes, **options, dtype=torch.float64)
    else:
        known = {*SIDE_NAMES, *cell_names()}
        raise UnknownNameError(
            f"there is no side {asked!r}. {nearest_name(asked, known)} One of your own is written "
            "file.py:name, weights are a file."
        )
    return _side_of_object(module, widths, asked)


def _split_name(asked: str) -> tuple[str, dict[str, Any]]:
    """Return a name without its endings, and the options that they mean."""
    options: dict[str, Any] = {}
    plain = asked.lower().removeprefix("torch.nn.").removeprefix("nn.")
    if asked.lower() not in (plain, f"torch.{plain}"):
        plain = f"torch.{plain}"
    for ending, option in _VARIANTS.items():
        if plain.endswith(ending) and plain not in cell_names():
            plain, options = plain.removesuffix(ending), options | option
    return plain, options


def _side_of_object(
    asked: object, widths: Widths, name: str, told: Mapping[str, int] | None = None
) -> Side:
    if isinstance(asked, Side):
        return asked
    if isinstance(asked, Mapping):
        return file_side(asked, name=name)
    if isinstance(asked, NumpyCell):
        return NumpySide(asked, name=name)
    if isinstance(asked, ForeignCell):
        asked = asked.module
    if isinstance(asked, nn.Module):
        return _side_of_module(getattr(asked, "_orig_mod", asked), widths, name, told or {})
    if not inspect.isclass(asked) and not isinstance(asked, CellLike) and callable(asked):
        return function_side(asked, widths.input_size, widths.hidden_size, name=name)
    hint = f" Hand over one of its objects, {name}(...)." if inspect.isclass(asked) else ""
    raise CellLoadError(
        "a side is a torch module, a step function, a NumPy cell or a name; got "
        f"{'the class ' if hint else ''}{name}.{hint}"
    )


def _side_of_module(module: nn.Module, widths: Widths, name: str, told: Mapping[str, int]) -> Side:
    if type(module) in (nn.LSTM, nn.GRU, nn.RNN):
        assert isinstance(module, nn.RNNBase)
        return LayerSide(module, name=name, what=f"torch.nn.{type(module).__name__}, fused")
    if isinstance(module, Cell):
        form = _usual_form(module.parts, module.input_size, module.hidden_size)
        side = ModuleSide(module, form, name=name, what="gradflow's cell")
        side.kind = module.kind if module.kind in ("lstm", "gru", "rnn") else None
        return side
    if isinstance(module, nn.RNNCellBase):
        parts = ("h", "c") if isinstance(module, nn.LSTMCell) else ("h",)
        form = _usual_form(parts, module.input_size, module.hidden_size)
        kind = type(module).__name__
        return ModuleSide(module, form, name=name, what=f"torch.nn.{kind}")
    return _side_of_user_module(module, (widths.input_size, widths.hidden_size), name, told)


def _side_of_user_module(
    module: nn.Module, widths: tuple[int, int], name: str, told: Mapping[str, int]
) -> Side:
    """Return a cell in torch's call form, or else in a looser one, or else a layer."""
    twin = float64_copy(module)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            form = find_form(twin, **told, sizes_if_free=widths)
    except CellLoadError:
        layer = sequence_side(twin, widths, name=name)
        if layer is not None:
            return layer
        loose = loose_cell(twin, widths)
        if loose is None:
            _require_a_state(twin, name)
            raise
        twin, form = loose
    if len(set(form.sizes)) > 1:
        raise CellLoadError(
            f"{name} has a state of different widths {form.sizes}; gates are matched where all "
            "parts are as wide as h."
        )
    return ModuleSide(twin, form, name=name, what="a module")


def _require_a_state(module: nn.Module, name: str) -> None:
    """Raise where a layer takes nothing but its input: it cannot start from a given state."""
    known = inspect.signature(module.forward).parameters
    if len(known) == 1:
        raise CellLoadError(
            f"{name} takes {', '.join(known)} alone, and parity starts from a state that is not "
            "zero, which is where cells differ. Let it take one: forward(x, state)."
        )


def _usual_form(parts: tuple[str, ...], input_size: int, hidden_size: int) -> CallForm:
    return CallForm(input_size, parts, (hidden_size,) * len(parts), bare=len(parts) == 1)
