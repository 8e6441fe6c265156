"""Figures inside a page, as data URIs: SVG while there is room, then smaller and smaller images.

A page that is mailed should stay below two megabytes. Few results fit as drawings; of many, the
largest are carried as images of few colours, and one that fits in no form is left to its file.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

from PIL import Image

from gradflow.present.report.model import ReportFigure
from gradflow.present.report.small_svg import small_svg

# What may stand in a URI between double quotes as it is; blanks may too, and are many.
_PLAIN = " ='()/:;,.-!*@&?+$[]{}|^~`_"


def data_uris(figures: Sequence[ReportFigure], room: int) -> dict[str, str | None]:
    """Return each figure's anchor to a data URI, so that all together take at most `room` bytes.

    The largest figures change to a smaller form first. None is a figure that no form is left for.
    """
    forms: Sequence[Callable[[ReportFigure], str | None]] = (_as_svg, _as_image, _as_thumb, _gone)
    level = {figure.anchor: 0 for figure in figures}
    uris = {figure.anchor: forms[0](figure) for figure in figures}
    by_anchor = {figure.anchor: figure for figure in figures}
    while _total(uris) > max(0, room):
        largest = max(uris, key=lambda anchor: len(uris[anchor] or ""))
        level[largest] += 1
        smaller = forms[level[largest]](by_anchor[largest])
        if smaller is None or len(smaller) < len(uris[largest] or ""):
            uris[largest] = smaller
    return uris


def svg_uri(svg: bytes) -> str:
    """Return an SVG as a data URI; quoted, since base64 would take a third more."""
    text = svg.decode("utf-8").replace('"', "'")
    return f"data:image/svg+xml,{quote(text, safe=_PLAIN)}"


def _total(uris: Mapping[str, str | None]) -> int:
    return sum(len(uri or "") for uri in uris.values())


def _as_svg(figure: ReportFigure) -> str | None:
    return svg_uri(small_svg(figure.svg))


def _as_image(figure: ReportFigure) -> str | None:
    return _png_uri(figure.png(), width=int(1.5 * figure.width), colors=128)


def _as_thumb(figure: ReportFigure) -> str | None:
    return _png_uri(figure.png(), width=min(960, figure.width), colors=32)


def _gone(figure: ReportFigure) -> str | None:  # noqa: ARG001 - the last of the forms
    return None


def _png_uri(png: bytes, *, width: int, colors: int) -> str:
    image = Image.open(io.BytesIO(png)).convert("RGB")
    if width < image.width:
        size = (width, round(image.height * width / image.width))
        image = image.resize(size, Image.Resampling.LANCZOS)
    data = io.BytesIO()
    few = image.quantize(colors, dither=Image.Dither.NONE)
    few.save(data, "png", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode('ascii')}"
