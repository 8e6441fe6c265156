"""A stack of cells: layers and directions, residual links, dropout, padded batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from gradflow.cells.arguments import require_state
from gradflow.cells.masking import Lengths, length_mask, require_lengths, without_padding
from gradflow.cells.registry import make_cell
from gradflow.cells.shapes import State
from gradflow.cells.stack.dropout import Dropout, DropoutMasks
from gradflow.cells.stack.layer_run import output_part, run_cell
from gradflow.cells.stack.layers import Layers, States
from gradflow.cells.stack.require_stack import (
    require_count,
    require_input,
    require_layers,
    require_masks,
    require_options,
    require_torch_layer,
)
from gradflow.cells.stack.stack_run import StackRun
from gradflow.cells.stack.state_form import pack_states, unpack_states
from gradflow.cells.torch_layers import cells_of_layer
from gradflow.errors import ShapeError


class Stack(Layers):
    """Cells in layers: layer l reads what layer l - 1 shows, from one end or from both.

        y_t^(0) = x_t,   h_t^(l) = cell_l(dropout(y_t^(l-1)), s_{t-1}^(l)),
        y_t^(l) = h_t^(l), plus y_t^(l-1) with a residual link (as in GNMT, Wu et al. 2016)

    A layer has a residual link where its output is as wide as its input. In two directions y is
    the forward and the reversed h side by side. Without links it is torch's nn.LSTM, nn.GRU or
    nn.RNN (see `from_torch`); on padded batches it is torch's packed run.

    Args:
        cells: in torch's order: layer 0, (layer 0 reversed,) layer 1, ...; of any kind and width,
            as long as each layer reads what the one below shows.
        bidirectional: whether every layer has two cells, the second of them reversed.
        residual: add to each layer's output its input, where both are equally wide.
        dropout: a rate between layers, as in torch, or a `Dropout`; used in training mode.
        batch_first: whether `forward` takes and gives (batch, time, width).

    Raises:
        ShapeError: cells that do not fit on each other, or no layer that could have a link.
        CellLoadError: a cell that is no torch module, or recurrent dropout of a user's cell.

    >>> stack = Stack.build("gru", 3, 5, layers=2, bidirectional=True)
    >>> output, h = stack(torch.zeros(7, 2, 3), lengths=[7, 4])
    >>> output.shape, h.shape
    (torch.Size([7, 2, 10]), torch.Size([4, 2, 5]))
    """

    @classmethod
    def build(
        cls,
        cell: str,
        input_size: int,
        hidden_size: int,
        *,
        layers: int = 1,
        bidirectional: bool = False,
        residual: bool = False,
        dropout: float | Dropout = 0.0,
        batch_first: bool = False,
        **options: Any,
    ) -> Stack:
        """Return a stack of new cells of one kind by its name; `options` are for the cells.

        Raises:
            ShapeError: less than one layer.
            UnknownNameError: no such cell, or an option that it does not have.
        """
        require_count("layers", layers)
        require_options(cell, options)
        directions = 2 if bidirectional else 1
        widths = [input_size, *[directions * hidden_size] * (layers - 1)]
        cells = [
            make_cell(cell, width, hidden_size, **options)
            for width in widths
            for _ in range(directions)
        ]
        return cls(
            cells,
            bidirectional=bidirectional,
            residual=residual,
            dropout=dropout,
            batch_first=batch_first,
        )

    @classmethod
    def from_torch(cls, layer: nn.RNNBase) -> Stack:
        """Return nn.LSTM, nn.GRU or nn.RNN as a stack: same numbers, weights copied.

        Its dropout rate, its mode (training or not) and `batch_first` come along.

        Raises:
            CellLoadError: no such layer.
        """
        require_torch_layer(layer)
        stack = cls(
            cells_of_layer(layer),
            bidirectional=layer.bidirectional,
            dropout=layer.dropout,
            batch_first=layer.batch_first,
        )
        return stack.train(layer.training)

    def forward(
        self,
        x: Tensor,
        state: Any = None,
        *,
        lengths: Lengths | None = None,
        masks: DropoutMasks | None = None,
    ) -> tuple[Tensor, Any]:
        """Run in torch's call form: `output, h = stack(x)`, or `output, (h, c)` for LSTMs.

        Args:
            x: (time, batch, input), or (batch, time, input) with `batch_first`.
            state: h or (h, c), each (cells, batch, width); zeros where None. Cells that differ in
                their parts have a tuple with the state of each.
            lengths: how many steps are each sample's own; all where None. The order is kept.
            masks: dropout masks to use; in training mode new ones are drawn where None.

        Returns:
            The output (zeros at padded steps) and the states after each sample's own last step,
            in the form of `state`.
        """
        steps_first = x.transpose(0, 1) if self.batch_first else x
        states = None if state is None else unpack_states(self.all_cells(), state)
        run = self.run(steps_first, states, lengths=lengths, masks=masks)
        output = run.output.transpose(0, 1) if self.batch_first else run.output
        return output, pack_states(self.all_cells(), run.final)

    def run(
        self,
        x: Tensor,
        start: Sequence[State] | None = None,
        *,
        lengths: Lengths | None = None,
        masks: DropoutMasks | None = None,
    ) -> StackRun:
        """Run over x (time, batch, input) and keep every layer's inputs and states.

        Args:
            x: (time, batch, input), whatever `batch_first` says.
            start: the first state of each cell, zeros where None.
            lengths, masks: see `forward`.

        Raises:
            ShapeError, DtypeError: x, the states or the lengths do not fit.
        """
        require_input(x, width=self.input_size, dtype=self.dtype)
        steps, batch = x.shape[:2]
        begin = self._first_states(start, batch)
        own = None if lengths is None else require_lengths(lengths, steps=steps, batch=batch)
        own = None if own is None else own.to(x.device)
        valid = None if own is None or bool((own == steps).all()) else length_mask(own, steps)
        if masks is None and self.training and self.dropout.active:
            masks = self.draw_masks(steps, batch)
        elif masks is not None:
            self._require_masks(masks, steps, batch)
        inputs, states, output = self._run_layers(x, begin, valid, masks)
        final = tuple(
            tuple(part[0 if self.is_reversed(index) else -1] for part in visited)
            for index, visited in enumerate(states)
        )
        return StackRun(inputs, states, begin, final, output, own, valid, masks)

    def _run_layers(
        self, x: Tensor, start: States, valid: Tensor | None, masks: DropoutMasks | None
    ) -> tuple[tuple[Tensor, ...], States, Tensor]:
        below = x if valid is None else without_padding(x, valid)
        inputs, states = [], []
        for layer in range(self.layers):
            drop = None if masks is None else masks.between[layer]
            inputs.append(below if drop is None else below * drop)
            shown = []
            for direction, cell in enumerate(self.cells_of(layer)):
                index = layer * self.directions + direction
                visited = run_cell(
                    cell,
                    inputs[-1],
                    start[index],
                    reverse=direction == 1,
                    valid=valid,
                    recurrent_mask=None if masks is None else masks.recurrent[index],
                )
                states.append(visited)
                shown.append(visited[output_part(cell)])
            output = torch.cat(shown, dim=-1)
            output = output if valid is None else without_padding(output, valid)
            below = output + below if self.has_link(layer) else output
        return tuple(inputs), tuple(states), below

    def draw_masks(
        self,
        steps: int,
        batch: int,
        *,
        generator: torch.Generator | None = None,
        dropout: float | Dropout | None = None,
    ) -> DropoutMasks:
        """Draw the dropout masks of one run.

        Args:
            steps, batch: of the input.
            generator: source of the masks; torch's global one where None.
            dropout: other rates or kind than the stack's own, a `Dropout` or a rate between layers.
        """
        require_count("steps", steps)
        rates = self.dropout if dropout is None else dropout
        rates = rates if isinstance(rates, Dropout) else Dropout(between=rates)
        cells = self.all_cells()
        require_layers(cells, directions=self.directions, dropout=rates)
        return DropoutMasks.draw(
            rates,
            steps=steps,
            like=cells[0].initial_state(batch)[0],
            read=[self.cell(layer).input_size for layer in range(1, self.layers)],
            hidden=[cell.hidden_size for cell in cells],
            generator=generator,
        )

    def _require_masks(self, masks: object, steps: int, batch: int) -> None:
        layers = [self.cell(layer).input_size for layer in range(self.layers)]
        hidden = [cell.hidden_size for cell in self.all_cells()]
        require_masks(masks, layers, hidden, steps=steps, batch=batch)

    def _first_states(self, given: Sequence[State] | None, batch: int) -> States:
        if given is None:
            return self.initial_state(batch)
        if len(given) != len(self.cells):
            raise ShapeError(
                f"a stack of {len(self.cells)} cells has as many states; got {len(given)}."
            )
        for cell, state in zip(self.all_cells(), given, strict=True):
            require_state(cell, state, batch=batch)
        return tuple(tuple(state) for state in given)
