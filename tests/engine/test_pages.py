"""The pages on spectra and paths are true: their Python runs and prints what they say."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from gradflow.config import COMMAND_SETTINGS, COMMON_OPTIONS

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.mark.parametrize("name", ["spectrum", "paths"])
def test_the_python_of_a_page_prints_what_the_page_says(name: str) -> None:
    """Every line that a block prints stands in the text below it, in backticks."""
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, f"{name}.md", "exec"), {})
        lines = printed.getvalue().splitlines()
        assert lines
        for line in lines:
            assert f"`{line}`" in page, line


@pytest.mark.parametrize("name", ["spectrum", "paths"])
def test_the_flags_of_a_page_exist(name: str) -> None:
    """Each command line on the page names flags of its command."""
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    lines = re.findall(r"^    gradflow (\w+)(.*)$", page, flags=re.MULTILINE)
    assert lines
    for command, rest in lines:
        known = {*COMMAND_SETTINGS[command].model_fields, *COMMON_OPTIONS}
        flags = {flag.replace("-", "_") for flag in re.findall(r"--([\w-]+)", rest)}
        assert flags <= known, rest
