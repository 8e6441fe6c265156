"""What a NumPy cell computes on the way forward, and what it hands back on the way back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gradflow.cells.numpy_cells.sigmoid import Array
from gradflow.errors import UnknownNameError, nearest_name

State = tuple[Array, ...]


@dataclass(frozen=True)
class NumpyStep:
    """Everything that one step forward computed.

    `x` is (batch, input); every other array is (batch, hidden). `previous` and `state` hold the
    state's parts before and after the step. `saved` holds what only the backward needs.
    """

    x: Array
    previous: State
    state: State
    gates: Mapping[str, Array]
    candidate: Array
    saved: Mapping[str, Array]


@dataclass(frozen=True)
class Trace:
    """A sequence run forward: one `NumpyStep` per input, oldest first.

    `parts` names the state's parts in order, ("h", "c") for an LSTM and ("h",) otherwise.
    """

    parts: tuple[str, ...]
    steps: tuple[NumpyStep, ...]

    @property
    def inputs(self) -> Array:
        """The inputs x_t, (time, batch, input)."""
        return np.stack([step.x for step in self.steps])

    @property
    def initial_state(self) -> State:
        """The state before the first step, parts of (batch, hidden)."""
        return self.steps[0].previous

    @property
    def final_state(self) -> State:
        """The state after the last step, parts of (batch, hidden)."""
        return self.steps[-1].state

    @property
    def hidden(self) -> Array:
        """Every h_t, (time, batch, hidden)."""
        return self.part("h")

    def part(self, name: str) -> Array:
        """Return one part of the state after every step, (time, batch, hidden)."""
        if name not in self.parts:
            raise UnknownNameError(
                f"state part {name!r} does not exist in this cell. {nearest_name(name, self.parts)}"
            )
        index = self.parts.index(name)
        return np.stack([step.state[index] for step in self.steps])

    def gate(self, name: str) -> Array:
        """Return one gate's value, or the candidate's, at every step, (time, batch, hidden)."""
        known = {**self.steps[0].gates, "candidate": self.steps[0].candidate}
        if name not in known:
            raise UnknownNameError(
                f"gate {name!r} does not exist in this cell. {nearest_name(name, known)}"
            )
        if name == "candidate":
            return np.stack([step.candidate for step in self.steps])
        return np.stack([step.gates[name] for step in self.steps])


@dataclass(frozen=True)
class StepGradients:
    """What one step of backpropagation computes; every array is (batch, hidden).

    `state` is the loss's gradient by the step's own new state, all of the future included;
    `previous` is what it hands to the step before. `deltas` is the gradient by each gate's
    pre-activation. `recurrent` pairs, for each gate, the gradient by the product with its rows
    of weight_hh with the vector that these rows multiplied.
    """

    state: State
    previous: State
    deltas: Mapping[str, Array]
    recurrent: Mapping[str, tuple[Array, Array]]


@dataclass(frozen=True)
class Gradients:
    """The gradient of a loss L by everything that a sequence was computed from.

    `parameters` has torch's names and layout. `inputs` is dL/dx_t, (time, batch, input).
    `initial_state` is dL/ds_0, part by part. `states` is dL/dh_t (and dL/dc_t) after every step,
    (time, batch, hidden), by every way to the loss: dL/dc_t includes the way out through h_t.
    `deltas` is the gradient by each gate's pre-activation, (time, batch, hidden).
    """

    parameters: Mapping[str, Array]
    inputs: Array
    initial_state: State
    states: Mapping[str, Array]
    deltas: Mapping[str, Array]
