"""torch's recurrent layers and cells, taken apart into cells that show their gates."""

from __future__ import annotations

from torch import nn

from gradflow.cells import GRU, LSTM, RNN, Cell, CellLike, ForeignCell
from gradflow.cells.torch_layers import cells_of_layer
from gradflow.errors import CellLoadError

TORCH_TYPES = (nn.RNN, nn.LSTM, nn.GRU, nn.RNNCell, nn.LSTMCell, nn.GRUCell)


def from_torch(module: nn.Module) -> list[CellLike]:
    """Return the cells that a recurrent torch module is made of, with copies of its weights.

    A layer with several levels or two directions has a cell for each, in torch's own order: layer
    0, layer 0 reversed, layer 1, layer 1 reversed, ... A reversed cell is the same recurrence; it
    reads the sequence from its end. Weights that are computed (weight norm) are taken as they are
    now. `batch_first` and `dropout` are of the layer, not of its cells.

    Args:
        module: nn.RNN, nn.LSTM, nn.GRU, nn.RNNCell, nn.LSTMCell or nn.GRUCell.

    Returns:
        A list of `LSTM`, `GRU` or `RNN`; of `ForeignCell` around a `ProjectedLSTM` for an LSTM with
        a projection (`proj_size`), whose h and c differ in width.

    Raises:
        CellLoadError: another kind of module; the message names the recurrent ones inside it.

    >>> cells = from_torch(nn.LSTM(3, 5, num_layers=2, bidirectional=True))
    >>> [(cell.kind, cell.input_size, cell.hidden_size) for cell in cells]
    [('lstm', 3, 5), ('lstm', 3, 5), ('lstm', 10, 5), ('lstm', 10, 5)]
    """
    original = getattr(module, "_orig_mod", module)  # torch.compile's wrapper
    if isinstance(original, Cell | ForeignCell):
        return [original]
    if isinstance(original, nn.RNNBase):
        return cells_of_layer(original)
    if isinstance(original, nn.LSTMCell):
        return [LSTM.from_torch(original)]
    if isinstance(original, nn.GRUCell):
        return [GRU.from_torch(original)]
    if isinstance(original, nn.RNNCell):
        return [RNN.from_torch(original)]
    raise CellLoadError(_refusal(original))


def _refusal(module: object) -> str:
    known = ", ".join(f"nn.{kind.__name__}" for kind in TORCH_TYPES)
    if not isinstance(module, nn.Module):
        return f"from_torch takes a torch module ({known}); got a {type(module).__name__}."
    inside = {
        name: type(part).__name__
        for name, part in module.named_modules()
        if name and isinstance(part, TORCH_TYPES)
    }
    hint = "A cell of your own is measured as gradflow.cells.ForeignCell(module)."
    if inside:
        listing = ", ".join(f"{name} (nn.{kind})" for name, kind in list(inside.items())[:4])
        hint = f"Inside it there is {listing}: give that one, as model.{next(iter(inside))}."
    return f"from_torch takes {known}; got {type(module).__name__}.\n{hint}"
