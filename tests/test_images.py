"""The images of the README and the pages are what the program draws."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "images"


def _maker():
    spec = importlib.util.spec_from_file_location("make_images", FOLDER / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKER = _maker()


def described(path: Path) -> list[str]:
    """The size of an SVG and its description, numbers to two digits: rounding differs by CPU."""
    text = path.read_text(encoding="utf-8")
    size = re.findall(r'<svg[^>]* (?:width|height|viewBox)="([^"]+)"', text)
    (alt,) = re.findall(r"<dc:description>(.*?)</dc:description>", text, flags=re.DOTALL)
    return [*size, re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.2g}", alt)]


@pytest.mark.parametrize("name", sorted(MAKER.IMAGES))
def test_an_image_is_what_its_command_draws(name: str, tmp_path: Path):
    """`python docs/images/make.py` would change nothing that a reader sees."""
    assert described(MAKER.make_image(name, tmp_path)) == described(FOLDER / name)


def test_every_image_has_a_command_and_a_place():
    """Made by the program, and shown in the README or on a page."""
    drawn = {path.name for path in FOLDER.glob("*.svg")}
    assert drawn == set(MAKER.IMAGES)
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    texts = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    assert [name for name in drawn if f"images/{name}" not in texts] == []
