"""Reading the gates of a cell that shows none: shut the other gates and look at the new state.

A bias far from zero opens a gate or shuts it, so one gate at a time is laid open:

    LSTM    i = 0                c' = f c           so  f = c' / c
            f = 0, g = 1         c' = i
            f = 0, i = 1         c' = g
            i = 0, f = 1, o = 1  h' = tanh(c)       what is shown
            i = 0, f = 1         h' = o tanh(c)     so  o = h' / tanh(c)
    GRU     n = +1 and n = -1    h' = z h +- (1 - z)   so  1 - z is half their difference
            z = 0                h' = n             with r = 0, r = 1 and r as it is
    RNN     h' is the candidate

What a cell does with its pre-activations stays its own, so two cells part at the gate where they
are made otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from gradflow.cells.shapes import State
from gradflow.checkpoints.sides import STANDARD_ORDER, Weights

# sigmoid(80) is 1 in float64, and exp(80) is far from overflow in a sigmoid written by hand
FAR = 80.0
Step = Callable[[Weights, State], State]


def read_gates(
    kind: str, step: Step, common: Weights, state: State, biases: tuple[str, ...]
) -> dict[str, Tensor]:
    """Return what each gate of a cell is at a state, (batch, hidden) each, in order of computing.

    Args:
        kind: "lstm", "gru" or "rnn".
        step: one step of the cell on given weights (torch's layout), from a given state.
        common: the weights.
        state: the state before the step.
        biases: the biases to move: those that reach the cell.
    """

    def held(**gates: float) -> State:
        return step(_held(kind, common, biases, gates), state)

    if kind == "lstm":
        return _lstm_gates(held, state)
    if kind == "gru":
        return _gru_gates(held)
    return {"candidate": held()[0]}


def _held(
    kind: str, common: Weights, biases: tuple[str, ...], gates: Mapping[str, float]
) -> Weights:
    """Return the weights with some gates' biases far up or down."""
    moved = {name: tensor.clone() for name, tensor in common.items()}
    order = STANDARD_ORDER[kind]
    for name in biases:
        blocks = moved[name].chunk(len(order))
        for gate, sign in gates.items():
            blocks[order.index(gate)].fill_(sign * FAR)
    return moved


def _lstm_gates(held: Callable[..., State], state: State) -> dict[str, Tensor]:
    h, c = state
    del h
    return {
        "input gate": held(forget=-1, candidate=1)[1],
        "forget gate": held(input=-1)[1] / c,
        "candidate": held(forget=-1, input=1)[1],
        "what the open output gate shows of c": held(input=-1, forget=1, output=1)[0],
        "output gate": held(input=-1, forget=1)[0] / torch.tanh(c),
    }


def _gru_gates(held: Callable[..., State]) -> dict[str, Tensor]:
    up, down = held(candidate=1)[0], held(candidate=-1)[0]
    shut = held(update=-1, reset=-1)[0]
    opened = held(update=-1, reset=1)[0]
    candidate = held(update=-1)[0]
    part = (torch.atanh(candidate) - torch.atanh(shut)) / (torch.atanh(opened) - torch.atanh(shut))
    return {
        "update gate": 1 - (up - down) / 2,
        "candidate with the reset gate shut": shut,
        "candidate with the reset gate open": opened,
        "reset gate, as it acts on the candidate": part,
        "candidate": candidate,
    }


def gate_of_quantity(quantity: str, kind: str) -> str | None:
    """Return the gate that a quantity of `read_gates` belongs to.

    >>> gate_of_quantity("candidate with the reset gate shut", "gru")
    'candidate'
    """
    if quantity.startswith("what the open output gate"):
        return "output"
    return next((gate for gate in STANDARD_ORDER[kind] if quantity.startswith(gate)), None)
