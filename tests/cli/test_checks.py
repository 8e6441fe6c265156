"""Passed checks in a line of standard error, and figures in the style that was asked for."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from gradflow.cli.checks import passed_checks
from gradflow.records.base import Check
from tests.cli.terminal import SMALL, in_process


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_error_of_a_check_is_named_and_what_is_allowed_is_not():
    """3.1e-13 was found; 1e-10 would have passed too."""
    found = "largest relative error 3.1e-13 (tolerance 1e-10) over 12 of 12 curves"
    allowed = Check("every gate stays in [0, 1]", True, "tolerance (1e-10) unused; 2e-5 elsewhere")
    line = passed_checks([allowed, Check("autograd agrees", True, found)])
    assert line == "2 checks passed: autograd agrees within 3.1e-13; every gate stays in [0, 1]."
    states = Check("states agree", True, "largest error 2.2e-16, tolerance 1e-10")
    assert passed_checks([states]) == "1 check passed: states agree within 2.2e-16."
    exact = Check("sums agree", True, "difference 0.0e+00")
    assert passed_checks([exact]) == "1 check passed: sums agree exactly."


def test_equal_checks_are_counted_and_many_are_cut():
    """Two cells have the order checked; of nine names five stand there."""
    order = Check("order", True, "lstm")
    assert passed_checks([order, order]) == "2 checks passed: order (2 times)."
    many = passed_checks([Check(f"check {number}", True, "") for number in range(9)])
    assert many.startswith("9 checks passed: check 0; check 1;")
    assert many.endswith("; check 4; and 4 more.")


def test_failed_checks_are_no_passed_ones():
    """They have lines of their own; where none passed there is no such line."""
    failed = Check("autograd agrees", False, "largest relative error 2e-1 (tolerance 1e-10)")
    assert passed_checks([failed]) == passed_checks([]) == ""


def test_a_run_says_what_passed_and_quietly_says_nothing(capsys: pytest.CaptureFixture[str]):
    """On standard error, before the figure's path; the result on standard output is as it was."""
    told = in_process(capsys, "decay", *SMALL, "--out", "run")
    lines = told.err.splitlines()
    assert "2 checks passed: autograd agrees" in lines[-2]
    assert lines[-1].endswith("decay.png")
    assert "passed" not in told.out
    quiet = in_process(capsys, "decay", *SMALL, "--out", "run", "--quiet")
    assert (quiet.err, quiet.out) == ("", told.out)


def test_the_style_changes_the_figures_and_not_the_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    """A paper's PNG is as wide as a column, with a PDF beside; the digest is that of the screen."""
    in_process(capsys, "decay", *SMALL, "--cell", "lstm")
    (folder,) = (tmp_path / "runs").iterdir()
    first = json.loads((folder / "result.json").read_text())
    in_process(capsys, "decay", *SMALL, "--cell", "lstm", "--style", "paper")
    assert list((tmp_path / "runs").iterdir()) == [folder]
    second = json.loads((folder / "result.json").read_text())
    digests = [document["environment"]["settings_sha256"] for document in (first, second)]
    assert digests[0] == digests[1]
    assert first["config"] == second["config"]
    (width,) = struct.unpack(">I", (folder / "figures" / "decay.png").read_bytes()[16:20])
    assert width == 975  # 3.25 inches at 300 dots
    assert (folder / "figures" / "decay.pdf").read_bytes().startswith(b"%PDF")
    in_process(capsys, "decay", *SMALL, "--cell", "lstm", "--style", "screen")
    assert sorted(path.name for path in (folder / "figures").iterdir()) == [
        "decay.png",
        "decay.svg",
    ]


def test_the_environment_may_name_the_style(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """For all figures of a session; it is a variable that gradflow knows."""
    monkeypatch.setenv("GRADFLOW_STYLE", "paper")
    answer = in_process(capsys, "decay", *SMALL, "--out", "run")
    assert "GRADFLOW_STYLE" not in answer.err
    assert (tmp_path / "run" / "figures" / "decay.pdf").is_file()


def test_an_unknown_style_ends_the_request_before_anything_is_measured(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    """The message offers the nearest; nothing is written."""
    answer = in_process(capsys, "decay", *SMALL, "--style", "papr")
    assert answer.code == 2
    assert "Did you mean 'paper'" in answer.err
    assert list(tmp_path.iterdir()) == []
