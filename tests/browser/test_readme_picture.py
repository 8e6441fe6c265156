"""The picture of a report in the README is of what the program makes."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image

from tests.browser.chromium import Tab
from tests.browser.readme_picture import COMMAND, HEIGHT, PICTURE, ROOT, WIDTH, take_picture

_TINY = ("report", "--studies", "step,params", "--figure-format", "svg")


def test_the_picture_is_of_the_command_that_the_readme_names() -> None:
    """Beside the picture stands what made it."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"gradflow {' '.join(COMMAND)}\n" in readme
    assert f"]({PICTURE.relative_to(ROOT).as_posix()})" in readme
    with Image.open(PICTURE) as picture:
        assert picture.size == (WIDTH, HEIGHT)


def test_the_picture_can_be_taken_again(tab: Tab, tmp_path: Path) -> None:
    """A command is run, and the top of its page is photographed: words on paper, not a blank."""
    target = tmp_path / "report.png"
    take_picture(tab, target, _TINY)
    image = Image.open(io.BytesIO(target.read_bytes())).convert("L")
    assert image.size == (WIDTH, HEIGHT)
    pixels = np.asarray(image)
    assert 0.5 < (pixels > 230).mean() < 0.99
    assert (pixels < 80).mean() > 0.01


def test_the_picture_is_small_enough_for_a_readme() -> None:
    """A quarter of a megabyte at most."""
    assert PICTURE.stat().st_size < 250_000
