"""Labels at the ends of lines, which never lie on each other.

Each label wants the height of its line's end. Where they would overlap they move apart, as
little as possible in the square (isotonic regression by pooling adjacent violators), and a thin
line leads from a label that moved to its line, or the line's own mark stands before the label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation

from gradflow.present.palette import INK, QUIET
from gradflow.present.theme import inches_of


@dataclass(frozen=True)
class EndLabel:
    """A text that belongs to height `y` of the axis (a share: 0 is its foot, 1 its top).

    The less important labels (`spare`) go first where there is no room for all. `key` is the mark
    of the line, drawn before the text in place of a leader: for many lines that end close by.
    """

    text: str
    y: float
    color: str = INK
    spare: bool = False
    key: Line2D | None = None


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return heights at least `gap` apart within [low, high], as near as can be to those wanted.

    Args:
        wanted: heights in rising order.
        gap: the least distance; made smaller where `high - low` has no room for it.
        low: the least height.
        high: the greatest height.

    >>> spread([0.0, 0.1, 5.0], 1.0, -10.0, 10.0)
    [-0.45, 0.55, 5.0]
    """
    if not wanted:
        return []
    gap = min(gap, (high - low) / max(1, len(wanted) - 1))
    pools: list[tuple[float, int]] = []  # mean and size of runs that must move together
    for index, height in enumerate(wanted):
        mean, size = height - index * gap, 1
        while pools and pools[-1][0] >= mean:
            other, others = pools.pop()
            mean, size = (mean * size + other * others) / (size + others), size + others
        pools.append((mean, size))
    top = high - (len(wanted) - 1) * gap
    levels = [min(max(mean, low), top) for mean, size in pools for _ in range(size)]
    return [level + index * gap for index, level in enumerate(levels)]


def draw_end_labels(ax: Axes, labels: Sequence[EndLabel], *, size: float, x: float = 1.0) -> None:
    """Write labels right of where the lines end (`x`, a share of the axis), `size` in points."""
    height = 72.0 * inches_of(ax)[1]
    gap = 1.25 * size / height
    low, high = 0.4 * gap, 1.0 + 1.2 * gap
    kept = sorted(labels, key=lambda label: label.y)
    if (len(kept) - 1) * gap > high - low:
        kept = [label for label in kept if not label.spare]
    room = (high - low) / max(1, len(kept) - 1)
    size *= min(1.0, room / gap)
    heights = spread([min(max(label.y, 0.0), 1.0) for label in kept], gap, low, high)
    for label, place in zip(kept, heights, strict=True):
        _write(ax, label, x=x, offset=(place - label.y) * height, size=size)


def _write(ax: Axes, label: EndLabel, *, x: float, offset: float, size: float) -> None:
    moved = abs(offset) > 0.3 * size
    if label.key is not None:
        _draw_key(ax, label, x=x, offset=offset, size=size)
    ax.annotate(
        label.text,
        xy=(x, label.y),
        xycoords="axes fraction",
        xytext=(1.4 * size, offset),
        textcoords="offset points",
        fontsize=size,
        color=label.color,
        va="center",
        ha="left",
        annotation_clip=False,
        arrowprops=None
        if label.key is not None
        else {
            "arrowstyle": "-",
            "color": QUIET if moved else label.color,
            "linewidth": 0.5,
            "shrinkA": 1.0,
            "shrinkB": 1.0,
            "relpos": (0.0, 0.5),
        },
    )


def _draw_key(ax: Axes, label: EndLabel, *, x: float, offset: float, size: float) -> None:
    """Draw a label's mark in the place where its leader would be."""
    figure = ax.get_figure(root=True)
    if label.key is None or figure is None:
        return
    aside = ScaledTranslation(0.8 * size / 72, offset / 72, figure.dpi_scale_trans)
    key = Line2D([x], [label.y], transform=ax.transAxes + aside, clip_on=False, label="_key")
    for look in ("marker", "markersize", "markerfacecolor", "markeredgecolor", "markeredgewidth"):
        key.set(**{look: getattr(label.key, f"get_{look}")()})
    ax.add_artist(key)
