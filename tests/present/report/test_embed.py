"""Figures inside a page: drawings while there is room, then images, then words."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
from matplotlib.colors import to_rgb
from PIL import Image

from gradflow.present.decay_figure import decay_figure
from gradflow.present.palette import gate_color
from gradflow.present.report.embed import data_uris, few_colors, svg_uri
from gradflow.present.report.model import ReportFigure
from tests.present.decays import two_rows
from tests.present.report.stored import whole_report

FIGURES = [figure for entry in whole_report().entries for figure in entry.figures]
ROOMY = 10**8


def kinds(figures: list[ReportFigure], room: int) -> list[str]:
    """Return what each figure is carried as."""
    uris = data_uris(figures, room).values()
    return [(uri or "nothing").partition(";")[0].partition(",")[0] for uri in uris]


def test_a_drawing_comes_out_of_its_uri_as_it_went_in() -> None:
    """What would end the attribute or the URI is quoted; the rest stands as it is."""
    svg = b'<svg a="1"><use href="#b"/>100% &amp; more</svg>'
    uri = svg_uri(svg)
    assert not set('"&#') & set(uri)
    assert unquote(uri.partition(",")[2]) == svg.decode().replace('"', "'")


def test_with_room_every_figure_is_a_drawing() -> None:
    """Each is an SVG that can be read."""
    for uri in data_uris(FIGURES, ROOMY).values():
        assert uri is not None
        ElementTree.fromstring(unquote(uri.partition(",")[2]))


def test_without_room_the_largest_become_images_first() -> None:
    """What is carried never takes more than the room, and small drawings stay drawings."""
    whole = data_uris(FIGURES, ROOMY)
    total = sum(len(uri or "") for uri in whole.values())
    for share in (0.9, 0.2):
        uris = data_uris(FIGURES, int(share * total))
        assert sum(len(uri or "") for uri in uris.values()) <= share * total
        assert len(uris) == len(FIGURES)
    changed = data_uris(FIGURES, int(0.9 * total))
    images = [anchor for anchor, uri in changed.items() if uri and uri.startswith("data:image/png")]
    largest = max(whole, key=lambda anchor: len(whole[anchor] or ""))
    assert images
    assert largest in images
    data = base64.b64decode((changed[largest] or "").partition(",")[2])
    assert data.startswith(b"\x89PNG")


def test_with_no_room_at_all_nothing_is_carried() -> None:
    """The page then has the alt text, and the file beside it the figure."""
    assert set(kinds(FIGURES[:3], 0)) == {"nothing"}
    assert set(kinds(FIGURES[:3], -5)) == {"nothing"}


def test_an_image_is_drawn_only_where_it_is_needed() -> None:
    """A PNG takes its time, and a page of a few drawings has none."""
    calls: list[int] = []

    def png() -> bytes:
        calls.append(1)
        return FIGURES[0].png()

    figure = replace(FIGURES[0], png=png)
    assert kinds([figure], ROOMY) == ["data:image/svg+xml"]
    assert calls == []
    assert kinds([figure], len(data_uris([figure], ROOMY)[figure.anchor] or "") - 1) != []
    assert calls == [1]


def test_an_image_keeps_the_colours_of_the_gates() -> None:
    """A gate value is known by its colour, in a drawing and in an image of few colours alike."""
    image = Image.open(io.BytesIO(few_colors(decay_figure(two_rows())))).convert("RGB")
    pixels = np.asarray(image, dtype=float).reshape(-1, 3)
    for gate in (0.1, 0.5, 0.9):
        color = 255 * np.array(to_rgb(gate_color(gate)))
        near = np.abs(pixels - color).max(axis=1) <= 3
        assert near.sum() > 100, gate
