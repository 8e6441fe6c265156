"""The known variants in words: what each does, who does it so, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping

from gradflow.checkpoints.sides import LETTERS, STANDARD_ORDER
from gradflow.experiments.parity.variants import Variant

# Orders of gates that are someone's own.
_KNOWN_ORDERS = {
    ("lstm", "i o f g"): "ONNX",
    ("lstm", "i f o g"): "Caffe and many hand-written cells",
    ("lstm", "i g f o"): "TensorFlow 1's BasicLSTMCell",
    ("lstm", "g i f o"): "Chainer, DyNet",
    ("lstm", "f i g o"): "input and forget gate exchanged",
    ("gru", "z r n"): "Keras, ONNX",
}
_SENTENCES: dict[tuple[str, str], str] = {
    ("candidate", "sigmoid"): "squashes the candidate by a sigmoid, where torch has tanh",
    ("candidate", "nothing"): "does not squash the candidate, where torch has tanh",
    ("candidate", "relu"): "squashes the candidate by relu, where torch has tanh",
    ("candidate", "hard tanh"): "squashes the candidate by a hard tanh (clipped to -1..1)",
    ("shown", "c"): "misses the output tanh: h = o * c, where torch has o * tanh(c)",
    ("shown", "sigmoid of c"): "shows o * sigmoid(c), where torch has o * tanh(c)",
    ("shown", "tanh of the old c"): "shows the old cell state: h_t = o * tanh(c_{t-1})",
    ("forget", "plus 1"): "adds 1 to the forget gate's bias in every step (TensorFlow 1's "
    "forget_bias), beside what the bias itself holds",
    ("input", "1 - f"): "couples the input gate: i = 1 - f, its own rows unused",
    ("returns", "(c, h)"): "returns (c, h), where torch has (h, c)",
    ("z", "writes"): "has z and 1 - z swapped: z writes, where torch's z keeps",
    ("reset", "before"): "resets before the matrix product, U_n (r * h), where torch resets after "
    "it, r * (U_n h + b_hn)",
    ("reset", "left out"): "leaves the reset gate out of the candidate",
    ("bias", "b_ih alone"): "adds one bias, b_ih, where torch adds b_ih + b_hh",
    ("bias", "b_hh alone"): "adds one bias, b_hh, where torch adds b_ih + b_hh",
    ("bias", "b_ih twice"): "adds b_ih twice, where torch adds b_ih + b_hh",
    ("bias", "b_hh twice"): "adds b_hh twice, where torch adds b_ih + b_hh",
    ("bias", "both twice"): "applies its bias twice",
    ("bias", "none"): "adds no bias",
    ("bias", "b_hn outside the reset"): "has b_hn outside the reset, where torch multiplies it by "
    "r: n = tanh(W_n x + b_in + b_hn + r * (U_n h))",
    ("recurrent", "transposed"): "multiplies h by the transpose: h @ U, where torch has h @ U.T",
}
_CURES: dict[str, str] = {
    "z": "Negate the update gate's rows of weights and biases to go from one to the other "
    "(1 - sigmoid(a) = sigmoid(-a)): GRU.swap_update_convention_.",
    "reset": "A variant, no bug: gradflow's gru-before computes it, torch has no cell for it.",
    "returns": "Return (h, c).",
    "recurrent": "Transpose the recurrent matrix.",
    "forget": "Take 1 off the bias when weights are carried over, or leave the constant out.",
}


def variant_name(variant: Variant, kind: str) -> str:
    """Return a short name: "reset before", "gate order i, o, f, g".

    >>> variant_name({"order": "input output forget candidate"}, "lstm")
    'gate order i, o, f, g'
    >>> variant_name({}, "gru")
    "torch's own"
    """
    if not variant:
        return "torch's own"
    return ", ".join(_name(switch, setting, kind) for switch, setting in variant.items())


def variant_sentence(variant: Variant, kind: str) -> str:
    """Return what a variant does, to follow the name of a side: "resets before the ...".

    >>> variant_sentence({"order": "input output forget candidate"}, "lstm")
    'has its rows in the order i, o, f, g (ONNX), where torch has i, f, g, o'
    """
    if not variant:
        return f"is torch's own {kind.upper()}"
    return "; it ".join(_sentence(switch, setting, kind) for switch, setting in variant.items())


def variant_cures(variant: Variant, kind: str, *, own_weights: bool) -> list[str]:
    """Return what to do about each switch, where there is something to do beside repairing it."""
    found = []
    for switch, setting in variant.items():
        if switch == "order":
            found.append(_order_cure(setting, kind, own_weights=own_weights))
        elif switch in _CURES:
            found.append(_CURES[switch])
    return found


def order_letters(order: str, kind: str) -> list[str]:
    """Return an order of gates by their letters.

    >>> order_letters("update reset candidate", "gru")
    ['z', 'r', 'n']
    """
    return [LETTERS[kind][gate] for gate in order.split()]


def _name(switch: str, setting: str, kind: str) -> str:
    if switch == "order":
        order, _, only = setting.partition(" in ")
        where = f" in {only} alone" if only else ""
        return f"gate order {', '.join(order_letters(order, kind))}{where}"
    if switch == "sigmoid":
        return f"hard sigmoid {setting}"
    if switch == "left out":
        return f"{setting} left out"
    return _NAMES.get((switch, setting)) or f"{switch}: {setting}"


_NAMES: Mapping[tuple[str, str], str] = {
    ("candidate", "nothing"): "candidate not squashed",
    ("candidate", "sigmoid"): "candidate by sigmoid",
    ("candidate", "relu"): "candidate by relu",
    ("candidate", "hard tanh"): "candidate by hard tanh",
    ("shown", "c"): "no output tanh",
    ("shown", "sigmoid of c"): "output by sigmoid",
    ("shown", "tanh of the old c"): "output of the old c",
    ("forget", "plus 1"): "forget bias + 1",
    ("input", "1 - f"): "input gate 1 - f",
    ("returns", "(c, h)"): "returns (c, h)",
    ("z", "writes"): "z swapped",
    ("reset", "before"): "reset before the product",
    ("reset", "left out"): "reset left out",
    ("bias", "b_ih alone"): "one bias, b_ih",
    ("bias", "b_hh alone"): "one bias, b_hh",
    ("bias", "b_ih twice"): "b_ih twice",
    ("bias", "b_hh twice"): "b_hh twice",
    ("bias", "both twice"): "bias applied twice",
    ("bias", "none"): "no bias",
    ("bias", "b_hn outside the reset"): "b_hn outside the reset",
    ("recurrent", "transposed"): "U transposed",
}


def _sentence(switch: str, setting: str, kind: str) -> str:
    if switch == "order":
        order, _, only = setting.partition(" in ")
        letters = order_letters(order, kind)
        known = _KNOWN_ORDERS.get((kind, " ".join(letters)))
        whose = f" ({known})" if known else ""
        usual = ", ".join(LETTERS[kind][gate] for gate in STANDARD_ORDER[kind])
        rows = f"the rows of its {only}" if only else "its rows"
        return f"has {rows} in the order {', '.join(letters)}{whose}, where torch has {usual}"
    if switch == "sigmoid":
        hard, _, where = setting.partition(" in ")
        users = {"0.2 a + 0.5": " (Keras 1 and 2)", "a / 6 + 0.5": " (torch, Keras 3)"}
        place = where if where == "every gate" else f"the {where} gate alone"
        return f"has the hard sigmoid clip({hard}, 0, 1){users.get(hard, '')} in {place}"
    if switch == "left out":
        source, _, gate = setting.partition(" of ")
        where = "the candidate" if gate == "candidate" else f"the {gate} gate"
        return f"leaves {source} out of {where}: its weights on {source} are not used"
    return _SENTENCES[switch, setting]


def _order_cure(setting: str, kind: str, *, own_weights: bool) -> str:
    order, _, only = setting.partition(" in ")
    letters = order_letters(order, kind)
    usual = STANDARD_ORDER[kind]
    blocks = [order.split().index(gate) for gate in usual]
    if only or own_weights:
        return (
            f"For torch's order take its blocks of rows {', '.join(map(str, blocks))} (counted "
            f"from 0) of {'the ' + only if only else 'every tensor'}."
        )
    return (
        f"That is how weights are stored and no wrong equation: --gate-order {''.join(letters)} "
        "compares under it."
    )
