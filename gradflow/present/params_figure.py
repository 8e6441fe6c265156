"""The figure of `gradflow params`: where each cell's parameters are, as stacked bars."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from gradflow.present.cell_titles import cell_title
from gradflow.present.layout import Grid, Words, labels_that_fit, make_sheet
from gradflow.present.palette import INK, hue
from gradflow.present.theme import Theme, describe, text_width, theme_context
from gradflow.records.params import ParameterCount, ParamsResult

# colour and hatch of each kind: neighbours differ in lightness or in hatch
_PARTS: dict[str, tuple[str, str]] = {
    "input weights": (hue(0), ""),
    "recurrent weights": (hue(2), ""),
    "projection": (hue(8), "\\\\\\"),
    "bias": (hue(1), ""),
    "second bias": (hue(3), "////"),
    "head": (hue(7), "||||"),
    "as built": (INK, ""),
}
_BAR = 0.62


def params_figure(result: ParamsResult, *, style: str = "screen") -> Figure:
    """Return stacked bars, one for each cell: input, recurrent, biases, head.

    Args:
        result: the counts; a cell without a formula has one bar "as built".
        style: "screen" or "paper".
    """
    parts = [parameter_parts(count) for count in result.counts]
    names = [name for name in _PARTS if any(part.get(name) for part in parts)]
    texts = [f"{count.built:,}" for count in result.counts]
    with theme_context(style) as theme:
        widest = max(text_width(_title(count), theme.font) for count in result.counts)
        grid = Grid(
            rows=1,
            columns=1,
            tick_room=widest / theme.em + 2.0,
            label_room=max(text_width(text, theme.font) for text in texts) + theme.em,
            height=(1.9 * len(parts) + 1.0) * theme.em,
            titled=False,
        )
        words = Words("Where the parameters are", caption=_caption(result))
        legend = [(Patch(**_look(name)), name) for name in names]
        sheet = make_sheet(theme, grid, words, legend=legend)
        _draw(sheet.axes[0][0], result, parts, theme)
        return describe(sheet.figure, _alt(result, parts))


def parameter_parts(count: ParameterCount) -> dict[str, int]:
    """Return how many parameters of each kind a network has, as it is built (two biases)."""
    if count.two_biases is None:
        return {"as built": count.built}
    bias = sum(layer.bias for layer in count.layers)
    return {
        "input weights": sum(layer.input_weights for layer in count.layers),
        "recurrent weights": sum(layer.recurrent_weights for layer in count.layers),
        "projection": sum(layer.projection_weights for layer in count.layers),
        "bias": bias,
        "second bias": bias,
        "head": count.head_weights + count.head_bias,
    }


def _draw(ax: Axes, result: ParamsResult, parts: list[dict[str, int]], theme: Theme) -> None:
    largest = max(count.built for count in result.counts)
    for row, (count, part) in enumerate(zip(result.counts, parts, strict=True)):
        left = 0.0
        for name in _PARTS:
            size = float(part.get(name, 0))
            ax.barh(row, size, height=_BAR, left=left, label=name, **_look(name))
            left += size
        ax.text(left + 0.01 * largest, row, f"{count.built:,}", va="center", ha="left")
    ax.set_yticks(range(len(parts)), [_title(count) for count in result.counts])
    ax.set_ylim(len(parts) - 0.4, -0.6)
    ax.set_xlim(0, largest)
    fitting = labels_that_fit(ax, f"{largest:,}", theme.font * 0.9)
    ax.xaxis.set_major_locator(MaxNLocator(min(4, fitting - 1), integer=True))
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.tick_params(axis="y", length=0, labelsize=theme.font)
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("parameters, as torch builds it")


def _look(name: str) -> dict[str, Any]:
    color, hatch = _PARTS[name]
    return {"facecolor": color, "hatch": hatch, "edgecolor": "white", "linewidth": 0.0}


def _title(count: ParameterCount) -> str:
    return cell_title(count.architecture.cell)


def network_words(result: ParamsResult) -> str:
    """Return what all the cells share, as one line."""
    network = max(
        (count.architecture for count in result.counts), key=lambda entry: entry.projection
    )
    words = [f"input {network.input_size}", f"hidden {network.hidden_size}"]
    words += [f"{network.layers} layers"] if network.layers > 1 else []
    words += ["both directions"] if network.bidirectional else []
    words += [f"projection {network.projection}"] if network.projection else []
    words += ["no bias"] if not network.bias else []
    words += [f"head of {network.output_size}"] if network.output_size else []
    work = result.workload
    if work.batch > 1 or work.steps > 1:
        words.append(f"memory for batch {work.batch}, {work.steps} steps")
    return ", ".join(words)


def _caption(result: ParamsResult) -> str:
    sizes = network_words(result)
    if any(part.get("second bias") for part in map(parameter_parts, result.counts)):
        rest = (
            "The second bias adds numbers, no freedom (but in a GRU's candidate): only sums count."
        )
        return f"{sizes}. {rest}"
    return f"{sizes}."


def _alt(result: ParamsResult, parts: list[dict[str, int]]) -> str:
    rows = [
        f"{count.architecture.cell} {count.built:,}: "
        + ", ".join(f"{name} {size:,}" for name, size in part.items() if size)
        for count, part in zip(result.counts, parts, strict=True)
    ]
    return f"Stacked bars of parameters by kind. {'; '.join(rows)}."
