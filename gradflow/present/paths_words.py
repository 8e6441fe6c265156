"""What the table and the figure of paths say in words: is f^T the right model here?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gradflow.present.cell_titles import cell_title, short_names
from gradflow.present.decay_words import ON_TREND
from gradflow.present.numbers import ABSENT, number_text, signed_text
from gradflow.records.paths import WITHOUT, CellPaths, PathLine

LEVEL = 0.01  # of ln: a hundredth
FLAT = 1e-12  # nats per step: two slopes that differ by less differ by rounding
_SYMBOLS = {"forget": "f", "update": "z"}


def symbol(paths: CellPaths) -> str:
    """Return the symbol of the keep gate: f, z, or its own name."""
    return _SYMBOLS.get(paths.gate_name or "", paths.gate_name or "keep gate")


def model(paths: CellPaths) -> str:
    """Return the model that is judged: "f^T", "z^T"."""
    return f"{symbol(paths)}^T"


def name(paths: CellPaths, *, short: bool = False) -> str:
    """Return the cell with what tells it apart: "LSTM, f=0.9, candidate gain 1"."""
    parts = [cell_title(short_names([paths.cell])[paths.cell])]
    if paths.gate_value is not None:
        parts.append(f"{symbol(paths)}={paths.gate_value:g}")
    if paths.candidate_gain is not None:
        word = "candidate gain" if paths.gate_value is not None else "recurrent gain"
        parts.append(f"{'gain' if short else word} {paths.candidate_gain:g}")
    return ", ".join(parts)


def is_right(paths: CellPaths) -> bool | None:
    """Return whether the rate is that of the product of keep gates; None where it has no rate."""
    departure = paths.departure
    return None if departure is None else abs(departure) <= ON_TREND


def level(paths: CellPaths) -> float | None:
    """Return ln(full / direct) at the last step: what a model of the right rate may still miss."""
    full, direct = paths.line("full"), paths.line("direct")
    if full is None or direct is None:
        return None
    apart = float(full.log10_norm[-1] - direct.log10_norm[-1]) * math.log(10.0)
    return apart if math.isfinite(apart) else None


def is_level(paths: CellPaths) -> bool:
    """Return whether the norm itself is that of the product, to a hundredth."""
    apart = level(paths)
    return apart is not None and abs(apart) <= LEVEL


def departure_text(paths: CellPaths) -> str:
    """Return the departure with its sign; what is rounding alone is 0."""
    departure = paths.departure
    return signed_text(0.0 if departure is not None and abs(departure) < FLAT else departure)


def verdict(paths: CellPaths) -> str:
    """Return "yes", "in rate" (the level is another), "no", or "-": nothing to compare."""
    right = is_right(paths)
    if right is None:
        return ABSENT
    if not right:
        return "no"
    return "yes" if is_level(paths) else "in rate"


def carrier(paths: CellPaths) -> tuple[str, float] | None:
    """Return the gate without which the rate changes most, and by how much in nats per step.

    None where no ablation was measured, or where no gate matters.
    """
    full = paths.line("full")
    if full is None or full.rate is None:
        return None
    changes = [
        (line.path.removeprefix(WITHOUT), full.rate - line.rate)
        for line in ablations(paths)
        if line.rate is not None
    ]
    if not changes:
        return None
    gate, change = max(changes, key=lambda pair: abs(pair[1]))
    return (gate, change) if abs(change) > ON_TREND else None


def constant(gate: str) -> str:
    """Return how an ablation is called.

    >>> constant("forget"), constant("candidate")
    ('forget gate constant', 'candidate constant')
    """
    return f"{gate} constant" if gate == "candidate" else f"{gate} gate constant"


def ablations(paths: CellPaths) -> list[PathLine]:
    """Return the lines that were measured with one gate taken as a constant."""
    return [line for line in paths.lines if line.path.startswith(WITHOUT)]


def sentence(paths: CellPaths) -> str | None:
    """Return the verdict in a sentence with its number, None where nothing can be compared."""
    departure = paths.departure
    if departure is None:
        return None
    head = f"{name(paths)}: {model(paths)} is"
    if is_right(paths):
        text = f"{head} the right model (departure {departure_text(paths)} nats per step)"
        apart = level(paths)
        if apart is None or is_level(paths):
            return f"{text}."
        return f"{text}, {number_text(math.exp(apart), 3)} times lower than the truth at the end."
    factor = number_text(math.exp(departure), 4) if departure < 700 else "over 1e300"
    text = (
        f"{head} off by {signed_text(departure)} nats per step: the gradient has {factor} times "
        "what it says, after every step"
    )
    found = carrier(paths)
    if found is None:
        return f"{text}."
    gate, change = found
    return f"{text}; with the {constant(gate)} the rate is {signed_text(-change)} apart."


def answer(all_paths: Sequence[CellPaths]) -> str:
    """Return how many of the cells the product of gates is right for, and the largest departure."""
    judged = [paths for paths in all_paths if paths.departure is not None]
    if not judged:
        return "No cell with a keep gate: there is no direct path to compare with."
    right = sum(bool(is_right(paths)) for paths in judged)
    models = "/".join(dict.fromkeys(model(paths) for paths in judged))
    head = f"Is {models} the right model here? For {right} of {len(judged)}"
    worst = max(judged, key=lambda paths: abs(paths.departure or 0.0))
    if right == len(judged):
        return f"{head}: the gradient runs straight through the keep gate."
    off = signed_text(worst.departure)
    return f"{head}; it is furthest off for {name(worst)}: {off} nats per step."
