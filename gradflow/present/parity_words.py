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


def headline(result: ParityResult) -> str:
    """Return the answer in a few words."""
    if result.passed:
        return "Parity holds"
    agree = all(comparison.passed for comparison in result.comparisons)
    return "Parity is not shown" if agree else "Parity is broken"


def side_words(side: ComparedSide, letter: str) -> str:
    """Return what a side is and how its gradient was found.

    >>> side_words(ComparedSide("my.py:step", "a function", "autograd"), "B")
    'B is a function (gradient by autograd)'
    """
    ways = {"none": "no gradient", "by hand": "gradient by hand"}
    return f"{letter} is {side.what} ({ways.get(side.gradient, f'gradient by {side.gradient}')})"


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
    files = sum("weights by" in side.what for side in (result.a, result.b))
    if weights == "own" or (weights == "auto" and (files == 2 or recorded)):
        words += ", each side's own weights"
    elif files and weights == "auto":
        words += ", the file's weights in both"
    elif weights not in ("auto", "random"):
        words += ", weights as given"
    else:
        biases = "no biases" if config.get("bias") == "zero" else "distinct biases"
        words += f", random weights with {biases} (seed {config.get('seed', 0)})"
    if not recorded and not config.get("data"):
        words += f", start at {'zero' if config.get('start') == 'zero' else 'a random state'}"
    return words
