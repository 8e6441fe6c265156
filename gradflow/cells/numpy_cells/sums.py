"""From the gradients of single steps to the gradients of a whole sequence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gradflow.cells.numpy_cells.sigmoid import Array
from gradflow.cells.numpy_cells.values import Gradients, StepGradients, Trace


def sum_gradients(
    parameters: Mapping[str, Array], trace: Trace, pulled: Sequence[StepGradients]
) -> Gradients:
    """Add the steps' shares up; `pulled` is in the order of time, like `trace`.

    With delta = dL/d(W x_t + b_ih) and gamma = dL/d(U v_t + b_hh), where v_t is h_{t-1} (or
    r * h_{t-1}, under a GRU's candidate that resets before the product):

        dL/dW = sum_t delta^T x_t    dL/db_ih = sum_t delta    dL/dx_t = delta W
        dL/dU = sum_t gamma^T v_t    dL/db_hh = sum_t gamma
    """
    deltas = {gate: np.stack([one.deltas[gate] for one in pulled]) for gate in pulled[0].deltas}
    joined = np.concatenate(list(deltas.values()), axis=2)
    shares = {
        "weight_ih": np.einsum("tbr,tbi->ri", joined, trace.inputs),
        "weight_hh": np.concatenate(
            [_recurrent_weight(pulled, gate) for gate in pulled[0].recurrent]
        ),
        "bias_ih": joined.sum(axis=(0, 1)),
        "bias_hh": np.concatenate([_recurrent_bias(pulled, gate) for gate in pulled[0].recurrent]),
    }
    return Gradients(
        parameters={name: shares[name] for name in parameters},
        inputs=joined @ parameters["weight_ih"],
        initial_state=pulled[0].previous,
        states={
            part: np.stack([one.state[index] for one in pulled])
            for index, part in enumerate(trace.parts)
        },
        deltas=deltas,
    )


def _recurrent_weight(pulled: Sequence[StepGradients], gate: str) -> Array:
    gammas = np.stack([one.recurrent[gate][0] for one in pulled])
    multiplied = np.stack([one.recurrent[gate][1] for one in pulled])
    share: Array = np.einsum("tbr,tbh->rh", gammas, multiplied)
    return share


def _recurrent_bias(pulled: Sequence[StepGradients], gate: str) -> Array:
    share: Array = np.sum([one.recurrent[gate][0] for one in pulled], axis=(0, 1))
    return share
