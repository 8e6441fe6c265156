"""The long short-term memory cell, forward and backward by hand.

    i = sigmoid(W_i x + U_i h + b_i)    f = sigmoid(W_f x + U_f h + b_f)
    g = tanh   (W_g x + U_g h + b_g)    o = sigmoid(W_o x + U_o h + b_o)
    c_t = f * c_{t-1} + i * g           h_t = o * tanh(c_t)

with h = h_{t-1} and b = b_ih + b_hh: Hochreiter and Schmidhuber 1997 with the forget gate of Gers,
Schmidhuber and Cummins 2000, no peepholes, in torch's row order i, f, g, o.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gradflow.cells.numpy_cells.cell import NumpyCell
from gradflow.cells.numpy_cells.sigmoid import Array, sigmoid, sigmoid_slope
from gradflow.cells.numpy_cells.values import NumpyStep, State, StepGradients


class NumpyLSTM(NumpyCell):
    """The LSTM in NumPy; state (h, c), rows "input", "forget", "candidate", "output"."""

    kind: ClassVar[str] = "lstm"
    parts: ClassVar[tuple[str, ...]] = ("h", "c")
    gate_order: ClassVar[tuple[str, ...]] = ("input", "forget", "candidate", "output")

    def step(self, x: Array, state: State) -> NumpyStep:
        """Run one step: x (batch, input), state (h, c)."""
        h_before, c_before = state
        from_x, from_h = self.input_sums(x), self.hidden_sums(h_before)
        total = {gate: from_x[gate] + from_h[gate] for gate in self.gate_order}
        gates = {gate: sigmoid(total[gate]) for gate in ("input", "forget", "output")}
        candidate = np.tanh(total["candidate"])
        c = gates["forget"] * c_before + gates["input"] * candidate
        c_shown = np.tanh(c)
        h = gates["output"] * c_shown
        return NumpyStep(x, state, (h, c), gates, candidate, saved={"c_shown": c_shown})

    def step_backward(
        self, step: NumpyStep, arriving: State, *, cut: frozenset[str] = frozenset()
    ) -> StepGradients:
        """Pull (dL/dh_t, what step t+1 says of c_t) back through one step.

        c_t reaches the loss twice: through step t+1, and through h_t = o tanh(c_t). h_{t-1} is
        reached four times, through the three gates and the candidate.
        """
        h_before, c_before = step.previous
        i, f, o = (step.gates[gate] for gate in ("input", "forget", "output"))
        g, c_shown = step.candidate, step.saved["c_shown"]
        dh, dc_from_future = arriving
        dc = dc_from_future + dh * o * (1 - c_shown**2)
        deltas = {
            "input": dc * g * sigmoid_slope(i),
            "forget": dc * c_before * sigmoid_slope(f),
            "candidate": dc * i * (1 - g**2),
            "output": dh * c_shown * sigmoid_slope(o),
        }
        return StepGradients(
            state=(dh, dc),
            previous=(self._through_gates(deltas, cut), dc * f),
            deltas=deltas,
            recurrent={gate: (delta, h_before) for gate, delta in deltas.items()},
        )
