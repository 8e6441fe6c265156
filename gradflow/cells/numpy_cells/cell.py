"""What every NumPy cell shares: its parameters, and the two loops over time.

Forward runs t = 1 ... T and keeps what each step computed. Backward runs t = T ... 1 and carries
one thing, the gradient of the loss by the state, from each step to the one before it
(backpropagation through time). What happens inside one step is in the cell's own file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from gradflow.cells.numpy_cells.checks import (
    read_floating,
    read_inputs,
    read_state,
    require_gates,
    require_parameters,
    require_shape,
)
from gradflow.cells.numpy_cells.sigmoid import Array
from gradflow.cells.numpy_cells.sums import sum_gradients
from gradflow.cells.numpy_cells.values import Gradients, NumpyStep, State, StepGradients, Trace
from gradflow.errors import UnknownNameError, nearest_name

PARAMETER_NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class NumpyCell:
    """A recurrence with its derivative written by hand, in NumPy alone.

    A subclass gives `kind`, `parts`, `gate_order` (the blocks of rows, in torch's order), `step`
    and `step_backward`.

    Args:
        weight_ih: (gates * hidden, input), what multiplies x_t.
        weight_hh: (gates * hidden, hidden), what multiplies h_{t-1}.
        bias_ih: (gates * hidden,) or None for no bias.
        bias_hh: (gates * hidden,) or None. Only the sum of both biases matters, except for the
            candidate of a GRU that resets after the product.

    Arrays are copied. Numbers that are not floating point become float64.

    Raises:
        ShapeError: an array does not fit the others.
    """

    kind: ClassVar[str]
    parts: ClassVar[tuple[str, ...]] = ("h",)
    gate_order: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        weight_ih: ArrayLike,
        weight_hh: ArrayLike,
        *,
        bias_ih: ArrayLike | None = None,
        bias_hh: ArrayLike | None = None,
    ) -> None:
        self.weight_ih = read_floating(weight_ih)
        self.weight_hh = read_floating(weight_hh)
        self.bias_ih = None if bias_ih is None else read_floating(bias_ih)
        self.bias_hh = None if bias_hh is None else read_floating(bias_hh)
        require_parameters(self.parameters, len(self.gate_order))

    @classmethod
    def from_parameters(
        cls, parameters: Mapping[str, ArrayLike], *, suffix: str = "", **options: Any
    ) -> Self:
        """Build the cell from a mapping with torch's names, such as a state_dict.

        Args:
            parameters: weight_ih and weight_hh, with or without bias_ih and bias_hh.
            suffix: what follows each name: "_l0" for the first layer of a torch.nn.LSTM.
            options: the cell's own keywords, such as reset="before".

        Raises:
            UnknownNameError: a weight is missing.
            ShapeError: an array does not fit the others.
        """
        found: dict[str, Any] = {name: parameters.get(name + suffix) for name in PARAMETER_NAMES}
        for name in ("weight_ih", "weight_hh"):
            if found[name] is None:
                wanted = name + suffix
                raise UnknownNameError(
                    f"this cell needs {wanted!r}, and the mapping has no such name. "
                    f"{nearest_name(wanted, parameters)} Name a layer by suffix='_l0'."
                )
        return cls(**found, **options)

    @classmethod
    def random(cls, input_size: int, hidden_size: int, *, seed: int = 0, **options: Any) -> Self:
        """Build the cell with every parameter uniform in +-1/sqrt(hidden), torch's own default.

        >>> from gradflow.cells.numpy_cells import NumpyLSTM
        >>> NumpyLSTM.random(3, 5).weight_ih.shape
        (20, 3)
        """
        generator = np.random.default_rng(seed)
        bound = 1 / np.sqrt(hidden_size)
        rows = len(cls.gate_order) * hidden_size
        shapes = ((rows, input_size), (rows, hidden_size), (rows,), (rows,))
        drawn: dict[str, Any] = {
            name: generator.uniform(-bound, bound, shape)
            for name, shape in zip(PARAMETER_NAMES, shapes, strict=True)
        }
        return cls(**drawn, **options)

    @property
    def hidden_size(self) -> int:
        """Width of h."""
        return int(self.weight_hh.shape[1])

    @property
    def input_size(self) -> int:
        """Width of x."""
        return int(self.weight_ih.shape[1])

    @property
    def parameters(self) -> dict[str, Array]:
        """The cell's own arrays under torch's names; absent biases are left out."""
        named = {name: getattr(self, name) for name in PARAMETER_NAMES}
        return {name: array for name, array in named.items() if array is not None}

    def initial_state(self, batch: int) -> State:
        """Return a state of zeros, one (batch, hidden) array per part."""
        shape = (batch, self.hidden_size)
        return tuple(np.zeros(shape, self.weight_hh.dtype) for _ in self.parts)

    def rows(self, parameter: Array, gate: str) -> Array:
        """Return one gate's block of rows of a parameter."""
        first = self.gate_order.index(gate) * self.hidden_size
        return parameter[first : first + self.hidden_size]

    def input_sums(self, x: Array) -> dict[str, Array]:
        """Return W x + b_ih gate by gate, each (batch, hidden)."""
        return self._by_gate(x @ self.weight_ih.T, self.bias_ih)

    def hidden_sums(self, h: Array) -> dict[str, Array]:
        """Return U h + b_hh gate by gate, each (batch, hidden)."""
        return self._by_gate(h @ self.weight_hh.T, self.bias_hh)

    def step(self, x: Array, state: State) -> NumpyStep:
        """Run one step: x (batch, input) and the old state to the new state."""
        raise NotImplementedError

    def step_backward(
        self, step: NumpyStep, arriving: State, *, cut: frozenset[str] = frozenset()
    ) -> StepGradients:
        """Pull the gradient by the new state back through one step; `cut` as in `backward`."""
        raise NotImplementedError

    def forward(self, inputs: ArrayLike, state: State | None = None) -> Trace:
        """Run a whole sequence and keep everything that the backward needs.

        Args:
            inputs: (time, batch, input), at least one step.
            state: parts of (batch, hidden); zeros when not given.

        Raises:
            ShapeError: inputs or state do not fit the cell.
        """
        xs = read_inputs(inputs, self.weight_ih)
        zeros = self.initial_state(xs.shape[1])
        now = zeros if state is None else read_state("state", state, zeros, self.parts)
        steps = []
        for x in xs:
            steps.append(self.step(x, now))
            now = steps[-1].state
        return Trace(self.parts, tuple(steps))

    def backward(
        self,
        trace: Trace,
        hidden_gradient: ArrayLike | None = None,
        *,
        final_gradient: State | None = None,
        cut: Iterable[str] = (),
    ) -> Gradients:
        """Backpropagate a loss through the whole sequence.

        Args:
            trace: what `forward` returned.
            hidden_gradient: the loss's own derivative by each h_t as an output, not counting
                what h_t does to later steps, (time, batch, hidden); zeros when not given.
            final_gradient: the loss's own derivative by each part of the last state.
            cut: gates (or "candidate") whose way back into h_{t-1} is closed: the gate's own
                gradient stays, what it would have told h_{t-1} is dropped. Empty for the true
                gradient; with every gate named only the direct path is left.

        Returns:
            Gradients; those of the parameters are summed over the batch.

        Raises:
            ShapeError: a gradient does not fit the trace.
            UnknownNameError: `cut` names something that is no gate of the cell.
        """
        hidden = trace.hidden
        own = np.zeros_like(hidden) if hidden_gradient is None else np.asarray(hidden_gradient)
        require_shape("hidden_gradient", own, hidden.shape, "time, batch, hidden")
        zeros = self.initial_state(hidden.shape[1])
        arriving = zeros
        if final_gradient is not None:
            arriving = read_state("final_gradient", final_gradient, zeros, self.parts)
        closed = require_gates(cut, self.gate_order)
        pulled: list[StepGradients] = []
        for step, own_now in zip(reversed(trace.steps), own[::-1], strict=True):
            arriving = (arriving[0] + own_now, *arriving[1:])
            pulled.append(self.step_backward(step, arriving, cut=closed))
            arriving = pulled[-1].previous
        return sum_gradients(self.parameters, trace, pulled[::-1])

    def _by_gate(self, sums: Array, bias: Array | None) -> dict[str, Array]:
        shifted = sums if bias is None else sums + bias
        blocks = np.split(shifted, len(self.gate_order), axis=1)
        return dict(zip(self.gate_order, blocks, strict=True))

    def _through_gates(self, deltas: Mapping[str, Array], cut: frozenset[str]) -> Array:
        """Sum over the gates that are not cut: U_gate^T delta_gate, (batch, hidden)."""
        zero = np.zeros_like(next(iter(deltas.values())))
        open_gates = [gate for gate in deltas if gate not in cut]
        return sum((deltas[gate] @ self.rows(self.weight_hh, gate) for gate in open_gates), zero)
