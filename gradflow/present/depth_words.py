"""What the table and the figures of a depth map say in words: titles, conditions, findings."""

from __future__ import annotations

import math

from gradflow.present.cell_titles import cell_title
from gradflow.present.numbers import counted, number_text
from gradflow.records.depth import DepthMap, DepthResult, DepthRow

_MASKS = {"none": "", "step": "fresh masks", "sequence": "one mask per sequence"}
MASKS_SHORT = {"none": "none", "step": "each step", "sequence": "sequence"}


def map_title(found: DepthMap) -> str:
    """Return a panel's title: the cell, its links, its masks.

    >>> from types import SimpleNamespace
    >>> map_title(SimpleNamespace(cell="lstm", residual=True, masks="step"))
    'LSTM, residual links, fresh masks'
    """
    links = "residual links" if found.residual else "no links"
    return ", ".join(filter(None, [cell_title(found.cell), links, _MASKS[found.masks]]))


def row_title(row: DepthRow, directions: int) -> str:
    """Return what a row is called: input, layer 2, or layer 2 reverse."""
    if row.layer == 0:
        return "input"
    return f"layer {row.layer}" + (f" {row.direction}" if directions == 2 else "")


def quantity(found: DepthMap) -> str:
    """Return what is measured, as mathtext: the norm of d end / d state."""
    part = "s" if found.block == "joint" else found.block
    end = rf"\partial y_T^{{({found.layers})}}" if "output" in found.read else (
        rf"\partial {part}_T^{{({found.layers})}}"
    )  # fmt: skip
    return rf"$\|{end}\,/\,\partial {part}_t^{{(l)}}\|$"


def plain_quantity(found: DepthMap) -> str:
    """Return what is measured without mathtext: ||d s_T(3) / d s_t(l)||."""
    part = "s" if found.block == "joint" else found.block
    end = "y" if "output" in found.read else part
    return f"||d {end}_T({found.layers}) / d {part}_t(l)||"


def read_words(found: DepthMap) -> str:
    """Return what is read at the end, in words."""
    direction, _, what = found.read.rpartition(" ")
    if what == "output":
        half = f"the {direction} half of " if direction else ""
        return f"{half}the last layer's last output"
    if found.directions == 1:
        return "the last layer's final state"
    if direction:
        return f"the last layer's {direction} final state"
    return "the last layer's final states, both directions"


def conditions(result: DepthResult) -> str:
    """Return what was measured, as one line."""
    config = result.config
    words = [counted(max(result.lengths, default=0), "step")]
    if len(set(result.lengths)) > 1:
        words = [f"{min(result.lengths)} to {words[0]}"]
    words.append(counted(len(result.lengths), "sample"))
    if config.get("hidden"):
        words.append(f"{config['hidden']} hidden units")
    if config.get("dropout"):
        words.append(f"dropout {config['dropout']:g} between layers")
    if config.get("recurrent_dropout"):
        words.append(f"recurrent dropout {config['recurrent_dropout']:g}")
    if config.get("init", "torch-default") != "torch-default":
        words.append(f"init {config['init']}")
    return ", ".join(words)


def title(result: DepthResult) -> str:
    """Return the title of the table and of the figures."""
    if not result.maps:
        return "How much of each layer is still felt at the top, at the end"
    return f"How much of each layer is still felt by {read_words(result.maps[0])}"


def findings(result: DepthResult) -> list[str]:
    """Return what the maps show side by side: what links change, what one mask changes."""
    return [
        sentence
        for sentence in [
            *(_link_words(pair) for pair in _pairs(result, "residual")),
            *(_mask_words(pair) for pair in _pairs(result, "masks") if not pair[0].residual),
        ]
        if sentence
    ]


def _pairs(result: DepthResult, differ: str) -> list[tuple[DepthMap, DepthMap]]:
    """Return the pairs of maps that differ in links (without, with) or masks (fresh, one) alone."""
    keys = [key for key in ("cell", "residual", "masks") if key != differ]
    first, second = (False, True) if differ == "residual" else ("step", "sequence")
    return [
        (one, other)
        for one in result.maps
        for other in result.maps
        if getattr(one, differ) == first
        and getattr(other, differ) == second
        and all(getattr(one, key) == getattr(other, key) for key in keys)
    ]


def _link_words(pair: tuple[DepthMap, DepthMap]) -> str:
    plain, linked = pair
    if plain.layers < 2 or plain.directions == 2:
        return ""
    near = _gain(plain, linked, 1, 0)
    far = _gain(plain, linked, 1, _far(plain))
    if near is None or far is None:
        return ""
    masks = f", {_MASKS[plain.masks]}" if plain.masks != "none" else ""
    return (
        f"{cell_title(plain.cell)}{masks}: with residual links layer 1 is felt {near} at its last "
        f"step, and {far} {counted(_far(plain), 'step')} before."
    )


def _mask_words(pair: tuple[DepthMap, DepthMap]) -> str:
    fresh, one = pair
    top = fresh.layers
    lag = _far(fresh)
    gain = _gain(fresh, one, top, lag)
    if gain is None or fresh.directions == 2 or lag == 0:
        return ""
    return (
        f"{cell_title(fresh.cell)}: under one mask per sequence layer {top} is felt {gain} "
        f"{counted(lag, 'step')} before the end, compared with fresh masks."
    )


def _gain(one: DepthMap, other: DepthMap, layer: int, lag: int) -> str | None:
    """Return by which factor a norm of the other map is larger, None where one is zero."""
    norms = (float(found.row(layer).log10_norm[lag]) for found in (one, other))
    before, after = norms
    if not (math.isfinite(before) and math.isfinite(after)):
        return None
    difference = after - before
    if abs(difference) < 0.02:
        return "as much"
    if abs(difference) > 300:
        return f"10^{difference:+.0f} times as much"
    word = "more" if difference > 0 else "less"
    return f"{number_text(10 ** abs(difference), 3)} times {word}"


def _far(found: DepthMap) -> int:
    """Return the largest lag that every sample has."""
    return int(found.lags[found.count == found.count.max()][-1])
