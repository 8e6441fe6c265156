"""The gated recurrent unit, forward and backward by hand, with the reset in either place.

    r = sigmoid(W_r x + b_ir + U_r h + b_hr)
    z = sigmoid(W_z x + b_iz + U_z h + b_hz)
    n = tanh(W_n x + b_in + r * (U_n h + b_hn))       reset after the product (torch, cuDNN)
    n = tanh(W_n x + b_in + U_n (r * h) + b_hn)       reset before it (Cho et al. 2014)
    h_t = z * h + (1 - z) * n                          z keeps; papers that swap z and 1-z exist

with h = h_{t-1}, in torch's row order r, z, n.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gradflow.cells.numpy_cells.cell import NumpyCell
from gradflow.cells.numpy_cells.sigmoid import Array, sigmoid, sigmoid_slope
from gradflow.cells.numpy_cells.values import NumpyStep, State, StepGradients
from gradflow.errors import UnknownNameError, nearest_name

RESET_PLACES = ("after", "before")


class NumpyGRU(NumpyCell):
    """The GRU in NumPy; state (h,), rows "reset", "update", "candidate".

    Args:
        reset: "after" or "before" the product with U_n.
    """

    kind: ClassVar[str] = "gru"
    gate_order: ClassVar[tuple[str, ...]] = ("reset", "update", "candidate")

    def __init__(
        self,
        weight_ih: ArrayLike,
        weight_hh: ArrayLike,
        *,
        bias_ih: ArrayLike | None = None,
        bias_hh: ArrayLike | None = None,
        reset: str = "after",
    ) -> None:
        if reset not in RESET_PLACES:
            raise UnknownNameError(
                f"reset {reset!r} is no place for a GRU's reset gate, which acts after or before "
                f"the product with h. {nearest_name(reset, RESET_PLACES)}"
            )
        self.reset = reset
        super().__init__(weight_ih, weight_hh, bias_ih=bias_ih, bias_hh=bias_hh)

    def step(self, x: Array, state: State) -> NumpyStep:
        """Run one step: x (batch, input), state (h,)."""
        (h_before,) = state
        from_x, from_h = self.input_sums(x), self.hidden_sums(h_before)
        r = sigmoid(from_x["reset"] + from_h["reset"])
        z = sigmoid(from_x["update"] + from_h["update"])
        if self.reset == "after":
            resettable = from_h["candidate"]
            recalled: Array = r * resettable
        else:
            resettable = h_before
            recalled = self.hidden_sums(r * resettable)["candidate"]
        n = np.tanh(from_x["candidate"] + recalled)
        h = z * h_before + (1 - z) * n
        gates = {"reset": r, "update": z}
        return NumpyStep(x, state, (h,), gates, candidate=n, saved={"resettable": resettable})

    def step_backward(
        self, step: NumpyStep, arriving: State, *, cut: frozenset[str] = frozenset()
    ) -> StepGradients:
        """Pull dL/dh_t back: directly by z, and through update gate, candidate and reset gate."""
        (dh,), (h_before,) = arriving, step.previous
        r, z, n = step.gates["reset"], step.gates["update"], step.candidate
        delta_n = dh * (1 - z) * (1 - n**2)
        delta_z = dh * (h_before - n) * sigmoid_slope(z)
        # What r multiplied is U_n h + b_hn after the product, and h itself before it.
        if self.reset == "after":
            at_product, multiplied = r * delta_n, h_before
            at_reset = delta_n
        else:
            at_product, multiplied = delta_n, r * h_before
            at_reset = delta_n @ self.rows(self.weight_hh, "candidate")
        delta_r = at_reset * step.saved["resettable"] * sigmoid_slope(r)
        through_gates = self._through_gates({"reset": delta_r, "update": delta_z}, cut)
        through_candidate = self._through_gates({"candidate": at_product}, cut)
        if self.reset == "before":
            through_candidate = r * through_candidate
        return StepGradients(
            state=arriving,
            previous=(dh * z + through_gates + through_candidate,),
            deltas={"reset": delta_r, "update": delta_z, "candidate": delta_n},
            recurrent={
                "reset": (delta_r, h_before),
                "update": (delta_z, h_before),
                "candidate": (at_product, multiplied),
            },
        )
