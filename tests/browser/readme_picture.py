"""Takes the README's picture of a report with the program itself.

    .venv/bin/python -m tests.browser.readme_picture

runs the command that the README names beside the picture, and writes docs/images/report.png.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from tests.browser.chromium import Tab, start_browser

ROOT = Path(__file__).parent.parent.parent
PICTURE = ROOT / "docs" / "images" / "report.png"
COMMAND = ("report", "--config", "report")
WIDTH, HEIGHT = 1280, 1560


def take_picture(tab: Tab, target: Path, command: Sequence[str] = COMMAND) -> None:
    """Run the command in a folder of its own and write the top of its page to `target`."""
    with tempfile.TemporaryDirectory() as work:
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        subprocess.run(
            [sys.executable, "-m", "gradflow", *command, "--out", "report", "--quiet"],
            cwd=work,
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        target.write_bytes(photograph(tab, Path(work, "report", "report.html")))


def photograph(tab: Tab, page: Path) -> bytes:
    """Return the top of a page as a PNG of 256 colours, those that are there."""
    tab.open(page, width=WIDTH)
    image = Image.open(io.BytesIO(tab.picture(height=HEIGHT))).convert("RGB")
    return packed(image)


def packed(image: Image.Image) -> bytes:
    """Return a picture in a third of the bytes: flat colours as they are, edges nearly so."""
    few = image.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=4, dither=Image.Dither.NONE)
    data = io.BytesIO()
    few.save(data, "png", optimize=True)
    return data.getvalue()


if __name__ == "__main__":
    browser = start_browser()
    try:
        take_picture(Tab(browser), PICTURE)
    finally:
        browser.quit()
