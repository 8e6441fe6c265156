"""The words of a parity that table and figure share."""

from __future__ import annotations

from gradflow.present.numbers import counted
from gradflow.records.parity import ComparedSide, Comparison, ParityResult

_GROUPS = {
    "state": "state",
    "gate": "gate",
    "input gradient": "gradient",
    "state gradient": "gradient",
    "parameter gradient": "gradient",
}


def group_words(group: str) -> str:
    """Return what a group of compared quantities is called.

    >>> group_words("state gradient")
    'gradient'
    """
    return _GROUPS.get(group, group)


def quantity_words(comparison: Comparison) -> str:
    """Return what was compared, to follow its group: "h", "forget", "by x", "by weights on h"."""
    name = comparison.quantity.removeprefix("dL/d")
    return f"by {name}" if group_words(comparison.group) == "gradient" else name


def short_name(side: ComparedSide) -> str:
    """Return a side's name without its folder.

    >>> short_name(ComparedSide("cells/mine.py:step", "a function", "autograd"))
    'mine.py:step'
    """
    return side.name.rpartition("/")[2]


def side_words(side: ComparedSide) -> str:
    """Return a side's name, with what it is where the name does not say that.

    >>> side_words(ComparedSide("torch.GRUCell", "torch.nn.GRUCell", "autograd"))
    'torch.GRUCell'
    """
    name = short_name(side)
    plain = side.what.removeprefix("torch.nn.").partition(",")[0]
    if name.startswith(("torch.", "numpy.")) or plain in name:
        return name
    return f"{name} ({side.what})"


def conditions(result: ParityResult) -> str:
    """Return what was run: kind, widths, steps, rows, weights, start, biases, seed."""
    sizes, config = result.sizes, result.config
    kind = f"{result.kind.upper()}, " if result.kind else ""
    words = (
        f"{kind}input {sizes['input_size']}, hidden {sizes['hidden_size']}, "
        f"{counted(sizes['steps'], 'step')}, {counted(sizes['batch'], 'row')}"
    )
    weights = config.get("weights", "auto")
    recorded = "recording" in result.a.what + result.b.what
    if recorded or config.get("data"):
        words += ", inputs as given"
    if weights in ("auto", "random") and "weights by" not in result.a.what + result.b.what:
        biases = "no biases" if config.get("bias") == "zero" else "distinct biases"
        words += f", random weights with {biases} (seed {config.get('seed', 0)})"
    if not recorded and not config.get("data"):
        words += f", start at {'zero' if config.get('start') == 'zero' else 'a random state'}"
    return words
