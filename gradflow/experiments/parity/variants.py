"""The known variants of LSTM, GRU and RNN, as one model with a switch for each habit.

    order       which gate each block of rows holds (torch: i, f, g, o and r, z, n)
    sigmoid     a hard sigmoid, min(max(slope * a + 1/2, 0), 1), for all gates or for one
    candidate   what squashes the candidate, where it is not tanh
    shown       what an LSTM's output gate multiplies, where it is not tanh(c_t)
    bias        which of the two bias vectors are added, and how often
    left out    what a gate does not read: x or h
    z           whether a GRU's update gate keeps (torch) or writes
    reset       whether its reset gate acts after the product (torch), before it, or not at all
    ...

A variant is a dict of the switches that are not torch's; {} is torch's own cell. All is NumPy in
float64, so that thousands of variants are tried in a second.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradflow.cells.numpy_cells import sigmoid
from gradflow.checkpoints.sides import STANDARD_ORDER

Array = NDArray[np.float64]
Variant = Mapping[str, str]
States = tuple[Array, ...]

HARD_SLOPES = {"0.2 a + 0.5": 0.2, "a / 6 + 0.5": 1 / 6, "a / 4 + 0.5": 0.25}
CANDIDATES: dict[str, Callable[[Array], Array]] = {
    "tanh": np.tanh,
    "sigmoid": lambda a: np.asarray(sigmoid(a)),
    "nothing": lambda a: a,
    "relu": lambda a: np.maximum(a, 0.0),
    "hard tanh": lambda a: np.clip(a, -1.0, 1.0),
}
# How often b_ih and b_hh are added.
BIASES = {
    "both": (1, 1),
    "b_ih alone": (1, 0),
    "b_hh alone": (0, 1),
    "b_ih twice": (2, 0),
    "b_hh twice": (0, 2),
    "both twice": (2, 2),
    "none": (0, 0),
}
# The tensors that can be in a foreign order by themselves.
ORDERED = ("weight_ih", "weight_hh", "biases")


@dataclass(frozen=True)
class Numbers:
    """The weights in torch's layout, gate by gate: w (gates, hidden, input), u, b_ih, b_hh."""

    kind: str
    w: Array
    u: Array
    b_ih: Array
    b_hh: Array

    @classmethod
    def of(cls, kind: str, standard: Mapping[str, Array]) -> Numbers:
        """Return torch's stacked tensors cut into gates."""
        gates = len(STANDARD_ORDER[kind])

        def cut(name: str) -> Array:
            return np.stack(np.split(np.asarray(standard[name], dtype=np.float64), gates))

        return cls(kind, cut("weight_ih"), cut("weight_hh"), cut("bias_ih"), cut("bias_hh"))

    @property
    def has_one_bias(self) -> bool:
        """True where only bias_ih is not zero: a cell with one bias per gate, or none."""
        return not self.b_hh.any()


def variant_step(numbers: Numbers, variant: Variant, x: Array, state: States) -> States:
    """Run one step of a variant: x (batch, input), one (batch, hidden) array per part."""
    if numbers.kind == "lstm":
        return _lstm_step(numbers, variant, x, state)
    return _gru_step(numbers, variant, x, state)


def variant_run(numbers: Numbers, variant: Variant, xs: Array, state: States) -> dict[str, Array]:
    """Run a variant over (time, batch, input); return part name to (time, batch, hidden)."""
    steps: list[States] = []
    for x in xs:
        steps.append(variant_step(numbers, variant, x, steps[-1] if steps else state))
    parts = ("h", "c") if numbers.kind == "lstm" else ("h",)
    return {part: np.stack([step[index] for step in steps]) for index, part in enumerate(parts)}


def choices(numbers: Numbers) -> dict[str, tuple[str, ...]]:
    """Return every switch of a kind with its settings other than torch's.

    Switches that these weights cannot show are left out: biases that are all zero, the transpose
    of a single number.
    """
    kind, gates = numbers.kind, STANDARD_ORDER[numbers.kind]
    found: dict[str, tuple[str, ...]] = {}
    if len(gates) > 1:
        found["order"] = tuple(" ".join(order) for order in itertools.permutations(gates))[1:]
        squashed = ("every gate", *(gate for gate in gates if gate != "candidate"))
        found["sigmoid"] = tuple(f"{hard} in {gate}" for gate in squashed for hard in HARD_SLOPES)
    found["candidate"] = tuple(name for name in CANDIDATES if name != "tanh")
    if numbers.b_ih.any() or numbers.b_hh.any():
        one = numbers.has_one_bias
        names = ("both twice", "none") if one else tuple(BIASES)[1:]
        outside = ("b_hn outside the reset",) if kind == "gru" and not one else ()
        found["bias"] = (*names, *outside)
    found["left out"] = tuple(f"{source} of {gate}" for gate in gates for source in ("x", "h"))
    if numbers.u.shape[1] > 1:
        found["recurrent"] = ("transposed",)
    return found | _KIND_CHOICES[kind]


def usual_choices(numbers: Numbers) -> dict[str, tuple[str, ...]]:
    """Return the switches that come together in cells written elsewhere: habits, not slips."""
    found = choices(numbers)
    if "sigmoid" in found:
        every = tuple(setting for setting in found["sigmoid"] if setting.endswith("every gate"))
        found["sigmoid"] = every
    slips = ("left out", "candidate", "recurrent", "returns")
    return {switch: settings for switch, settings in found.items() if switch not in slips}


_KIND_CHOICES: dict[str, dict[str, tuple[str, ...]]] = {
    "lstm": {
        "shown": ("c", "sigmoid of c", "tanh of the old c"),
        "forget": ("plus 1",),
        "input": ("1 - f",),
        "returns": ("(c, h)",),
    },
    "gru": {"z": ("writes",), "reset": ("before", "left out")},
    "rnn": {},
}


def count_of_variants(numbers: Numbers) -> int:
    """Return how many variants of one switch there are."""
    return sum(len(settings) for settings in choices(numbers).values())


def partial_orders(numbers: Numbers) -> Iterator[dict[str, str]]:
    """Yield the variants of which one tensor alone has its rows in another order."""
    gates = STANDARD_ORDER[numbers.kind]
    for order in itertools.permutations(gates):
        for tensor in ORDERED if order != gates else ():
            yield {"order": f"{' '.join(order)} in {tensor}"}


def combinations(
    open_choices: Mapping[str, tuple[str, ...]], count: int
) -> Iterator[dict[str, str]]:
    """Yield every variant that differs from torch's cell by `count` switches."""
    for switches in itertools.combinations(open_choices, count):
        for settings in itertools.product(*(open_choices[switch] for switch in switches)):
            variant = dict(zip(switches, settings, strict=True))
            if not is_repeated(variant):
                yield variant


def is_repeated(variant: Variant) -> bool:
    """Return whether one of the switches changes nothing beside another one."""
    outside = variant.get("bias") == "b_hn outside the reset"
    return outside and "reset" in variant


def _sums(numbers: Numbers, variant: Variant, x: Array, h: Array) -> dict[str, tuple[Array, Array]]:
    """Return W x + b and U h + b' of each gate, by the name of the gate that its rows hold."""
    usual = STANDARD_ORDER[numbers.kind]
    order, _, only = variant.get("order", " ".join(usual)).partition(" in ")
    foreign = order.split()
    once, again = BIASES.get(variant.get("bias", "both"), (1, 1))
    u = numbers.u.mT if "recurrent" in variant else numbers.u
    sums = {}
    for gate in usual:
        own = usual.index(gate)
        of_w, of_u, of_b = (
            foreign.index(gate) if only in ("", tensor) else own for tensor in ORDERED
        )
        left_out = variant.get("left out", "").partition(" of ")
        with_x, with_h = ((s, gate) != left_out[::2] for s in ("x", "h"))
        sums[gate] = (
            (x @ numbers.w[of_w].T if with_x else 0.0) + once * numbers.b_ih[of_b],
            (h @ u[of_u].T if with_h else 0.0) + again * numbers.b_hh[of_b],
        )
    return sums


def _gate(variant: Variant, gate: str, total: Array) -> Array:
    hard, _, where = variant.get("sigmoid", "").partition(" in ")
    if where in (gate, "every gate"):
        return np.clip(HARD_SLOPES[hard] * total + 0.5, 0.0, 1.0)
    return np.asarray(sigmoid(total))


def _squash(variant: Variant, total: Array) -> Array:
    return CANDIDATES[variant.get("candidate", "tanh")](total)


def _lstm_step(numbers: Numbers, variant: Variant, x: Array, state: States) -> States:
    h, c = state
    total = {gate: a + b for gate, (a, b) in _sums(numbers, variant, x, h).items()}
    f = _gate(variant, "forget", total["forget"] + (1.0 if "forget" in variant else 0.0))
    i = 1.0 - f if "input" in variant else _gate(variant, "input", total["input"])
    o = _gate(variant, "output", total["output"])
    new_c = f * c + i * _squash(variant, total["candidate"])
    new_h = o * _shown(variant, c, new_c)
    return (new_c, new_h) if "returns" in variant else (new_h, new_c)


def _shown(variant: Variant, old_c: Array, new_c: Array) -> Array:
    """Return what the output gate multiplies."""
    setting = variant.get("shown")
    if setting == "c":
        return new_c
    if setting == "sigmoid of c":
        return np.asarray(sigmoid(new_c))
    return np.asarray(np.tanh(old_c if setting == "tanh of the old c" else new_c))


def _gru_step(numbers: Numbers, variant: Variant, x: Array, state: States) -> States:
    (h,) = state
    sums = _sums(numbers, variant, x, h)
    if numbers.kind == "rnn":
        return (_squash(variant, sums["candidate"][0] + sums["candidate"][1]),)
    r = _gate(variant, "reset", sum(sums["reset"]))  # type: ignore[arg-type]
    z = _gate(variant, "update", sum(sums["update"]))  # type: ignore[arg-type]
    from_x, from_h = sums["candidate"]
    if variant.get("reset") == "before":
        from_h = _sums(numbers, variant, x, r * h)["candidate"][1]
    elif variant.get("bias") == "b_hn outside the reset":
        outside = _sums(numbers, variant, x, np.zeros_like(h))["candidate"][1]
        from_h = outside + r * (from_h - outside)
    elif "reset" not in variant:
        from_h = r * from_h
    n = _squash(variant, from_x + from_h)
    if "z" in variant:
        z = 1.0 - z
    return (z * h + (1.0 - z) * n,)
