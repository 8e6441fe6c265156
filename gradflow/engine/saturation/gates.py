"""Which bias belongs to which gate, in a module that does not say so: found by pushing each.

A bias that is pushed to -M and to +M shuts and opens its gate, and each gate of an LSTM or GRU
answers in a way of its own (f, i, o, g and z, r, n as in `gradflow.cells`):

    forget     c'(+M) - c'(-M) = c
    output     c' stays, h'(-M) = 0
    candidate  c'(+-M) = f c +- i, so that their mean is f c,
    input      which is c'(-M) of the input gate
    update     h'(+M) = h, or h'(-M) = h where 1 - z keeps
    candidate  h'(+-M) = z h +- (1 - z)
    reset      what is left

An answer counts only where every bias is accounted for; else the module keeps its secret.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor

from gradflow.cells import Gate, Rows, State
from gradflow.cells.gates import Role, parameter_of
from gradflow.engine.saturation.measure import Feed
from gradflow.engine.saturation.places import bias_blocks, ordinary_feed
from gradflow.engine.saturation.subjects import Subject

PUSH = 30.0  # e^-30 is nothing beside 1 in float32, and e^30 is far from its largest number
TOLERANCE = 1e-4
Answers = Sequence[tuple[State, State]]
"""The states after one step with a bias at -M and at +M, bias by bias."""
Names = dict[int, str]
"""The gate of each bias, by its number."""


def find_gates(subject: Subject) -> tuple[Gate, ...]:
    """Return the gates that the biases of a module belong to, or none where that is not certain.

    Args:
        subject: in float32 or float64; its weights are as before afterwards.
    """
    blocks = list(bias_blocks(subject))
    read = {1: _read_gru, 2: _read_lstm}.get(len(subject.cell.parts))
    if not blocks or read is None or len(set(subject.cell.part_sizes)) > 1:
        return ()
    feed = ordinary_feed(subject, steps=1, batch=4, seed=1)
    kept = copy.deepcopy(subject.module.state_dict())
    try:
        with torch.no_grad():
            names = read(feed.start, _push_each(subject, blocks, feed))
    finally:
        subject.module.load_state_dict(kept)
    by_gate: dict[str, list[Rows]] = {}
    for number, name in names.items():
        by_gate.setdefault(name, []).append(blocks[number])
    return tuple(_gate(subject, name, biases) for name, biases in by_gate.items())


def _push_each(subject: Subject, blocks: list[Rows], feed: Feed) -> Answers:
    """Push one bias after another, all others at 0."""
    biases = [rows.bias_of(subject.module) for rows in blocks]
    for bias in biases:
        bias.zero_()
    answers = []
    for bias in biases:
        pair = []
        for push in (-PUSH, PUSH):
            bias.fill_(push)
            pair.append(subject.step(feed.xs[0], feed.start)[0])
        bias.zero_()
        answers.append((pair[0], pair[1]))
    return answers


def _read_lstm(state: State, answers: Answers) -> Names:
    """Return the gate of each bias of an LSTM, or none."""
    names: Names = {}
    for number, (low, high) in enumerate(answers):
        if _same(low[1], high[1]) and _same(low[0], torch.zeros_like(low[0])):
            names[number] = "output"
        elif _same(high[1] - low[1], state[1]):
            names[number] = "forget"
    rest = {number: pair for number, pair in enumerate(answers) if number not in names}
    for number, (low, high) in rest.items():
        middle = (low[1] + high[1]) / 2
        writers = [other for other, pair in rest.items() if _same(pair[0][1], middle)]
        names |= dict.fromkeys(writers, "input")
        names |= {number: "candidate"} if writers else {}
    complete = set(names.values()) == {"input", "forget", "candidate", "output"}
    return dict(sorted(names.items())) if complete and len(names) == len(answers) else {}


def _read_gru(state: State, answers: Answers) -> Names:
    """Return the gate of each bias of a GRU, or none."""
    (hidden,) = state
    names: Names = {}
    for number, ((low,), (high,)) in enumerate(answers):
        if _same(high, hidden) or _same(low, hidden):
            names[number] = "update"
        elif _same((high - low) / 2 * hidden + (high + low) / 2, hidden):
            names[number] = "candidate"
        else:
            names[number] = "reset"
    return names if {"update", "candidate"} <= set(names.values()) else {}


_ROLES: dict[str, Role] = {
    "input": "write",
    "forget": "keep",
    "output": "output",
    "candidate": "candidate",
    "update": "keep",
    "reset": "reset",
}


def _gate(subject: Subject, name: str, biases: list[Rows]) -> Gate:
    """Return a gate with its biases, and the rows of the weights of the same layers."""
    weights = []
    for rows in biases:
        weight = rows.parameter.replace("bias", "weight")
        size = parameter_of(subject.module, rows.parameter).shape[-1]
        known = subject.parameters.get(weight) if weight != rows.parameter else None
        if known is not None and known.dim() == 2 and known.shape[0] == size:
            weights.append(Rows(weight, rows.rows))
    return Gate(name, _ROLES[name], bias=tuple(biases), weights=tuple(weights))


def _same(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one, other, rtol=0.0, atol=TOLERANCE)
