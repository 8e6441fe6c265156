"""The plain recurrent cell, forward and backward by hand.

    h_t = phi(W x_t + b_ih + U h_{t-1} + b_hh)        phi = tanh or relu

It has no gate: the only way back is through the candidate, which is the new state itself.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gradflow.cells.numpy_cells.cell import NumpyCell
from gradflow.cells.numpy_cells.sigmoid import Array
from gradflow.cells.numpy_cells.values import NumpyStep, State, StepGradients
from gradflow.errors import UnknownNameError, nearest_name

NONLINEARITIES = ("tanh", "relu")


class NumpyRNN(NumpyCell):
    """Elman's recurrence in NumPy: arguments as for every NumPy cell, rows "candidate".

    Args:
        nonlinearity: "tanh" or "relu". The slope of relu at exactly 0 is 0, as in torch.
    """

    kind: ClassVar[str] = "rnn"
    gate_order: ClassVar[tuple[str, ...]] = ("candidate",)

    def __init__(
        self,
        weight_ih: ArrayLike,
        weight_hh: ArrayLike,
        *,
        bias_ih: ArrayLike | None = None,
        bias_hh: ArrayLike | None = None,
        nonlinearity: str = "tanh",
    ) -> None:
        if nonlinearity not in NONLINEARITIES:
            raise UnknownNameError(
                f"nonlinearity {nonlinearity!r} is not one this cell can differentiate. "
                f"{nearest_name(nonlinearity, NONLINEARITIES)}"
            )
        self.nonlinearity = nonlinearity
        super().__init__(weight_ih, weight_hh, bias_ih=bias_ih, bias_hh=bias_hh)

    def step(self, x: Array, state: State) -> NumpyStep:
        """Run one step: x (batch, input), state (h,)."""
        (h_before,) = state
        total = self.input_sums(x)["candidate"] + self.hidden_sums(h_before)["candidate"]
        h = np.tanh(total) if self.nonlinearity == "tanh" else np.maximum(total, 0)
        return NumpyStep(x, state, (h,), gates={}, candidate=h, saved={})

    def step_backward(
        self, step: NumpyStep, arriving: State, *, cut: frozenset[str] = frozenset()
    ) -> StepGradients:
        """Pull dL/dh_t back: delta = phi' dL/dh_t, then dL/dh_{t-1} = U^T delta."""
        (dh,), h = arriving, step.candidate
        slope = 1 - h**2 if self.nonlinearity == "tanh" else (h > 0).astype(h.dtype)
        deltas = {"candidate": dh * slope}
        return StepGradients(
            state=arriving,
            previous=(self._through_gates(deltas, cut),),
            deltas=deltas,
            recurrent={"candidate": (deltas["candidate"], step.previous[0])},
        )
