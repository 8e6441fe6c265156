"""A figure that is made small for the page draws the same."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from gradflow.present.report.small_svg import small_svg
from gradflow.present.theme import figure_bytes
from tests.present.every_figure import COMMANDS, figures_of

SVG = "{http://www.w3.org/2000/svg}"
XLINK = "{http://www.w3.org/1999/xlink}href"


def shapes(svg: bytes) -> list[tuple[str, list[float], str | None]]:
    """Return each path and use: kind, numbers in its outline and place, and its style in full."""
    root = ElementTree.fromstring(svg)
    rules = dict(re.findall(r"\.(\w+)\{([^}]*)\}", root.findtext(f".//{SVG}style") or ""))
    found = []
    for element in root.iter():
        if element.tag in (f"{SVG}path", f"{SVG}use"):
            style = element.get("style") or rules.get(element.get("class") or "")
            found.append((element.tag, _numbers(element), style and re.sub(r"\s", "", style)))
    return found


def _numbers(element: ElementTree.Element) -> list[float]:
    move = re.search(r"translate\(([-\d.]+)(?: ([-\d.]+))?\)", element.get("transform") or "")
    x, y = (float(number or 0) for number in move.groups()) if move else (0.0, 0.0)
    place = [x + float(element.get("x") or 0), y + float(element.get("y") or 0)]
    return [*map(float, re.findall(r"-?\d+\.?\d*", element.get("d") or "")), *place]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_shape_stays_within_a_tenth_of_a_letters_unit(command: str) -> None:
    """The same shapes in the same order and style; numbers move by two roundings, no more."""
    for figure in figures_of(command, "screen").values():
        full = figure_bytes(figure, "svg")
        small = small_svg(full)
        before, after = shapes(full), shapes(small)
        assert len(before) == len(after) > 50
        for (kind, old, style), (other, new, other_style) in zip(before, after, strict=True):
            assert (kind, len(old)) == (other, len(new))
            np.testing.assert_allclose(new, old, rtol=0, atol=0.0551)
            assert (style or "").count(":") == (other_style or "").count(":")
        assert len(small) < 0.7 * len(full)


def test_every_reference_has_its_name() -> None:
    """Short names are given once, and everything that refers finds one."""
    (figure,) = figures_of("spectrum", "screen").values()
    root = ElementTree.fromstring(small_svg(figure_bytes(figure, "svg")))
    names = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(names) == len(set(names)) > 5
    wanted = {element.get("href") or element.get(XLINK) for element in root.iter(f"{SVG}use")}
    clips = {element.get("clip-path") for element in root.iter() if element.get("clip-path")}
    assert wanted
    assert clips
    assert {str(name).removeprefix("#") for name in wanted} <= set(names)
    assert {str(clip)[5:-1] for clip in clips} <= set(names)
