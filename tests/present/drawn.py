"""Reading a figure without looking at its pixels: its texts, its lines, and where they lie."""

from __future__ import annotations

from itertools import combinations

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

SLACK = 1.0  # pixels: boxes that touch do not overlap


def text_boxes(figure: Figure) -> list[tuple[str, Bbox]]:
    """Return every text that is drawn, with its box in pixels (without a label's leader line)."""
    canvas = FigureCanvasAgg(figure)
    figure.draw_without_rendering()  # places everything and paints no pixel
    renderer = canvas.get_renderer()
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    unseen = _labels_beyond_the_axis(figure)
    shown = [text for text in texts if text.get_visible() and text not in unseen]
    boxes = [(text.get_text(), Text.get_window_extent(text, renderer)) for text in shown]
    return [(words, box) for words, box in boxes if words.strip() and box.width > 0]


def _labels_beyond_the_axis(figure: Figure) -> set[Text]:
    """Return the labels of ticks outside their axis: matplotlib keeps them and draws none."""
    beyond: set[Text] = set()
    for axis in (axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)):
        low, high = sorted(axis.get_view_interval())
        slack = 1e-9 * (high - low)
        ticks = axis.get_major_ticks()
        outside = [tick for tick in ticks if not low - slack <= tick.get_loc() <= high + slack]
        beyond |= {tick.label1 for tick in outside}
    return beyond


def texts_outside(figure: Figure) -> list[str]:
    """Return the texts that the figure's edge cuts."""
    boxes = text_boxes(figure)
    width, height = figure.bbox.width, figure.bbox.height
    return [
        words
        for words, box in boxes
        if box.x0 < 0 or box.y0 < 0 or box.x1 > width or box.y1 > height
    ]


def texts_on_texts(figure: Figure) -> list[tuple[str, str]]:
    """Return the pairs of texts that lie on each other."""
    return [
        (one, other)
        for (one, a), (other, b) in combinations(text_boxes(figure), 2)
        if min(a.x1, b.x1) - max(a.x0, b.x0) > SLACK and min(a.y1, b.y1) - max(a.y0, b.y0) > SLACK
    ]


def panels(figure: Figure) -> dict[str, Axes]:
    """Return the panels that hold something, by title."""
    return {ax.get_title(loc="left"): ax for ax in figure.axes if ax.lines}


def line(ax: Axes, label: str) -> Line2D:
    """Return the line of a label."""
    (found,) = [item for item in ax.lines if item.get_label() == label]
    return found


def marks(ax: Axes, marker: str) -> list[Line2D]:
    """Return what is drawn with a marker and no line: the values that have no logarithm."""
    return [
        item for item in ax.lines if item.get_linestyle() == "None" and item.get_marker() == marker
    ]


def words(figure: Figure) -> str:
    """Return all texts of a figure."""
    return "\n".join(text for text, _ in text_boxes(figure))
