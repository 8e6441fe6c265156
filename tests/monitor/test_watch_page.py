"""The page on watching, and the example that it shows, are true."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
from pathlib import Path

import pytest

from gradflow.present.watch_changes import horizon_changes
from gradflow.records.finding_codes import FINDING_KINDS
from gradflow.store import load_log

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "watch.md").read_text(encoding="utf-8")
RECORDED = load_log(ROOT / "examples" / "watched_training.jsonl")


def test_the_python_of_the_page_runs_and_prints_what_it_says():
    """A default LSTM does not reach the first of 60 steps."""
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "watch.md", "exec"), {})
    (line,) = printed.getvalue().splitlines()
    said = re.search(r"a line that begins `([^`]+)`", PAGE)
    assert said is not None
    assert line.startswith(said[1])


def test_every_code_of_the_page_is_a_finding():
    """And so is explained."""
    assert set(re.findall(r"GF\d{3}", PAGE)) <= set(FINDING_KINDS)


def test_the_images_of_the_page_are_there():
    """In the repository."""
    targets = re.findall(r"!\[[^]]*\]\(([^)]+)\)", PAGE)
    assert targets
    assert all((ROOT / "docs" / target).is_file() for target in targets)


def test_the_recorded_example_shows_what_its_docstring_says():
    """Some ten steps are reached until update 500, and all forty from then on."""
    (place,) = RECORDED.places
    (change,) = horizon_changes(RECORDED, place)
    assert (change.update, change.after) == (500, ">39")
    assert 8 <= float(change.before) <= 14
    assert [(found.code, found.update) for found in RECORDED.findings] == [("GF101", 0)]


def test_the_recorded_example_is_what_its_program_measures(tmp_path: Path):
    """Run again for its first samples; processors differ in the last digits."""
    path = ROOT / "examples" / "watched_training.py"
    spec = importlib.util.spec_from_file_location("watched_training", path)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    program.train(str(tmp_path / "again"), updates=1)
    (again,) = load_log(tmp_path / "again").samples
    first = RECORDED.samples[0]
    assert again.layers[0].log10_dL_dh == pytest.approx(first.layers[0].log10_dL_dh, abs=1e-3)
    assert again.layers[0].horizon == pytest.approx(first.layers[0].horizon, abs=1e-2)
