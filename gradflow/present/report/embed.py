"""Figures inside a page, as data URIs: drawings while there is room, then images.

A page that is mailed should stay below two megabytes. Some thirty drawings fit. Of more, the
largest are carried as images of few colours, and one that does not fit even so is left to its file.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence

from matplotlib.figure import Figure
from PIL import Image

from gradflow.present.report.model import ReportFigure
from gradflow.present.report.small_svg import small_svg
from gradflow.present.theme import theme_context

PIXELS = 96  # CSS pixels in an inch
_COLORS = 128


def data_uris(figures: Sequence[ReportFigure], room: int) -> dict[str, str | None]:
    """Return each figure's anchor to a data URI, so that all together take at most `room` bytes.

    The largest figures change to a smaller form first. None is a figure that no form is left for.
    """
    by_anchor = {figure.anchor: figure for figure in figures}
    forms: dict[str, list[_Form]] = {anchor: [_as_image, _as_nothing] for anchor in by_anchor}
    uris = {anchor: _as_drawing(figure) for anchor, figure in by_anchor.items()}
    while _total(uris) > max(0, room):
        largest = max(uris, key=lambda anchor: len(uris[anchor] or ""))
        smaller = forms[largest].pop(0)(by_anchor[largest])
        if smaller is None or len(smaller) < len(uris[largest] or ""):
            uris[largest] = smaller
    return uris


_Form = Callable[[ReportFigure], "str | None"]


def svg_uri(svg: bytes) -> str:
    """Return an SVG as a data URI that may stand between double quotes in HTML.

    Quoted, and only what must be: base64 would take a third more.
    """
    text = svg.decode("utf-8").replace('"', "'")
    for sign in "%#&":  # the first is what the others are quoted with
        text = text.replace(sign, f"%{ord(sign):02X}")
    return f"data:image/svg+xml,{text}"


def _total(uris: Mapping[str, str | None]) -> int:
    return sum(len((uri or "").encode("utf-8")) for uri in uris.values())


def _as_drawing(figure: ReportFigure) -> str | None:
    return svg_uri(small_svg(figure.svg))


def few_colors(figure: Figure) -> bytes:
    """Return a figure as a PNG of few colours, a pixel for each CSS pixel."""
    raw = io.BytesIO()
    with theme_context():
        figure.savefig(raw, format="raw", dpi=PIXELS)
    size = (int(figure.get_figwidth() * PIXELS), int(figure.get_figheight() * PIXELS))
    image = Image.frombytes("RGBA", size, raw.getvalue()).convert("RGB")
    # the fast way would shift the colours of lines, by which a reader knows a gate value
    few = image.quantize(_COLORS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    data = io.BytesIO()
    few.save(data, "png", compress_level=9)
    return data.getvalue()


def _as_image(figure: ReportFigure) -> str | None:
    return f"data:image/png;base64,{base64.b64encode(figure.png()).decode('ascii')}"


def _as_nothing(figure: ReportFigure) -> str | None:  # noqa: ARG001 - the last of the forms
    return None
