"""The figure of `gradflow inits`: how gradients fade, and how gates and first steps are spread.

One colour and one marker for each initialization.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gradflow.present.cell_titles import cell_title
from gradflow.present.init_panels import (
    draw_curves,
    draw_gates,
    draw_singular_values,
    draw_time_constants,
    name_rows,
)
from gradflow.present.layout import Grid, Words, make_sheet
from gradflow.present.numbers import number_text
from gradflow.present.palette import INK
from gradflow.present.theme import Theme, describe, text_width, theme_context
from gradflow.records.inits import InitFlow, InitsResult

Draw = Callable[[Axes, Sequence[InitFlow], Theme, float], None]
_ROW, _TIGHT = 1.5, 1.12  # em, of an initialization in a panel, and where rows must be close
_BETWEEN, _AROUND = 5.6, 7.5  # em, between two rows of panels, and for the legend


def inits_figure(result: InitsResult, *, style: str = "screen") -> Figure:
    """Return the figure: for each cell its curves, keep gates, time constants, singular values.

    A plain RNN has no gate, and two panels. Lines and dots are medians over draws, bands and bars
    their spread.

    Args:
        result: what `gradflow inits` measured.
        style: "screen" or "paper".
    """
    names = dict.fromkeys(flow.cell for flow in result.inits)
    pages = [(result.of_cell(name), _panels(result.of_cell(name))) for name in names]
    with theme_context(style) as theme:
        rows = sum(len(panels) // 2 for _, panels in pages)
        sheet = make_sheet(
            theme, _grid(result, rows, theme), _words(result), legend=_legend(result, theme)
        )
        places = iter([ax for row in sheet.axes for ax in row])
        for flows, panels in pages:
            for (title, draw), ax in zip(panels, places, strict=False):
                ax.set_title(f"{cell_title(flows[0].cell)}: {title}", fontsize=theme.font)
                draw(ax, flows, theme, result.threshold)
                if draw is not draw_curves:
                    name_rows(ax, flows, theme)
        return describe(sheet.figure, alt_of(result))


def alt_of(result: InitsResult) -> str:
    """Return the alt text: for each initialization when the gradient is gone, or what is left."""
    sentences = []
    for name in dict.fromkeys(flow.cell for flow in result.inits):
        parts = [f"{flow.init} {_fate(flow)}" for flow in result.of_cell(name)]
        sentences.append(f"{cell_title(name)}: {', '.join(parts)}.")
    kind = f"Steps until the gradient's norm is {result.threshold:g}, by initialization."
    return " ".join([kind, *sentences])


def _panels(flows: Sequence[InitFlow]) -> list[tuple[str, Draw]]:
    curves: tuple[str, Draw] = ("norm over T", draw_curves)
    singular: tuple[str, Draw] = ("first step's singular values", draw_singular_values)
    keep = flows[0].keep_gate
    if keep is None:
        return [curves, singular]
    return [
        curves,
        (f"{keep.name} gate over the run", draw_gates),
        ("time constant, and steps until gone", draw_time_constants),
        singular,
    ]


def _grid(result: InitsResult, rows: int, theme: Theme) -> Grid:
    most = max(len(result.of_cell(flow.cell)) for flow in result.inits)
    widest = max(text_width(flow.init, theme.font * 0.95) for flow in result.inits)
    return Grid(
        rows=rows,
        columns=2,
        label_room=widest + 1.8 * theme.em,
        tick_room=5.6,
        between=_BETWEEN,
        height=_height(rows, most, theme),
    )


def _height(rows: int, most: int, theme: Theme) -> float:
    """Return the height of a panel in inches: lower where many cells must fit a page."""
    wanted = max(0.8 * theme.panel_height, (_ROW * most + 1.0) * theme.em)
    room = theme.greatest_height / rows - (_BETWEEN + _AROUND / rows) * theme.em
    return max(min(wanted, room), (_TIGHT * most + 1.0) * theme.em)


def _legend(result: InitsResult, theme: Theme) -> list[tuple[Line2D, str]]:
    bar: dict[str, Any] = {"color": INK, "solid_capstyle": "butt"}
    mark: dict[str, Any] = {"ms": theme.marker, "color": INK, "mfc": "white", "linestyle": "none"}
    legend = [
        (Line2D([], [], marker="o", ms=theme.marker, lw=theme.line, color=INK), "median"),
        (Line2D([], [], lw=theme.line * 2.4, **bar), "half of all (25% to 75%)"),
        (Line2D([], [], lw=theme.line * 0.5, **bar), "nine tenths (5% to 95%)"),
        (
            Line2D([], [], marker="D", **mark),
            "steps until gone; spectral radius",
        ),
    ]
    if any(flow.horizons.median is None and flow.time_constant for flow in result.inits):
        legend.append((Line2D([], [], marker=">", **mark), "not gone by the last step"))
    return legend


def _words(result: InitsResult) -> Words:
    config = result.config
    facts = [f"hidden {config['hidden']}"] if "hidden" in config else []
    facts += [f"{config['seeds']} draws, bands from the least to the greatest"] * (
        "seeds" in config
    )
    facts += [f"{config['input']} input"] if "input" in config else []
    return Words(
        "What an initialization does to a gradient, before any training",
        ", ".join(facts),
        _caption(result),
    )


def _caption(result: InitsResult) -> str:
    longest = max(result.inits, key=_reach)
    shortest = min(result.inits, key=_reach)
    if longest is shortest:
        return ""
    return (
        f"Soonest gone: {_name(shortest)} ({_fate(shortest)}); longest kept: {_name(longest)} "
        f"({_fate(longest)})."
    )


def _reach(flow: InitFlow) -> float:
    """Return how far a gradient gets: its horizon, and beyond the run what is left of it."""
    median = flow.horizons.median
    if median is not None:
        return float(median)
    return float(flow.steps[-1]) + 1.0 + max(0.0, float(flow.log10_norm[-1]) + 400.0)


def _name(flow: InitFlow) -> str:
    return f"{cell_title(flow.cell)} {flow.init}"


def _fate(flow: InitFlow) -> str:
    median = flow.horizons.median
    if median is not None:
        return f"{median:.0f} steps"
    left = float(flow.log10_norm[-1])
    return f"10^{number_text(left, 3)} left at T={int(flow.steps[-1])}"
