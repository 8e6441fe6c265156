"""How a command ends: the exit code, one message, no traceback."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import gradflow.experiments.decay
from gradflow.errors import Interrupted, SettingError
from gradflow.records import Check, DecayResult
from tests.cli.terminal import SMALL, in_process, in_shell

Raise = Callable[[BaseException], None]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def fail_with(monkeypatch: pytest.MonkeyPatch) -> Raise:
    """Return a function that makes the measurement end with an exception."""

    def prepare(problem: BaseException) -> None:
        def run(*_: object, **__: object) -> None:
            raise problem

        monkeypatch.setattr(gradflow.experiments.decay, "run_decay", run)

    return prepare


@pytest.mark.parametrize(
    ("problem", "code", "words"),
    [
        (SettingError("the rule; got 3. Use 4."), 2, "Error: the rule; got 3. Use 4."),
        (KeyboardInterrupt(), 130, "Interrupted"),
        (Interrupted("3 of 5 cells were saved"), 130, "3 of 5 cells were saved"),
        (MemoryError("Unable to allocate 8 TiB"), 2, "more memory than there is"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), 2, "--hidden"),
        (ZeroDivisionError("division by zero"), 3, "fault of its own: ZeroDivisionError"),
        (KeyError("state"), 3, "fault of its own: KeyError"),
        (ModuleNotFoundError("No module named 'torch'", name="torch"), 2, "gradflow doctor"),
    ],
)
def test_every_failure_is_one_message_and_its_code(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    fail_with: Raise,
    problem: BaseException,
    code: int,
    words: str,
):
    """2: the request; 3: our fault; 130: interrupted. Nothing is printed or written."""
    fail_with(problem)
    answer = in_process(capsys, "decay", *SMALL)
    assert answer.code == code
    assert words in answer.err
    assert "Traceback" not in answer.err
    assert len(answer.err.strip().splitlines()) <= 3
    assert answer.out == ""
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_the_traceback_as_well(capsys: pytest.CaptureFixture[str], fail_with: Raise):
    """For a bug report: the traceback first, the message last."""
    fail_with(ZeroDivisionError("division by zero"))
    answer = in_process(capsys, "decay", *SMALL, "--debug")
    assert answer.code == 3
    assert "Traceback" in answer.err
    assert "fault of its own" in answer.err.split("Traceback")[1]


def test_a_failed_check_is_exit_code_1_and_the_result_is_kept(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A run that found something wrong has still measured it."""
    measured = gradflow.experiments.decay.run_decay

    def run(*arguments: object, **options: object) -> DecayResult:
        result = measured(*arguments, **options)
        return dataclasses.replace(result, checks=(Check("it holds", False, "1 > 0"),))

    monkeypatch.setattr(gradflow.experiments.decay, "run_decay", run)
    answer = in_process(capsys, "decay", *SMALL, "--format", "json", "--out", "run")
    assert answer.code == 1
    assert "Check failed: it holds (1 > 0)" in answer.err
    assert json.loads(answer.out) == json.loads((tmp_path / "run" / "result.json").read_text())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["decya"], "Did you mean 'decay'?"),
        (["decay", "--gat", "0.5"], "gradflow decay has no option --gat. Did you mean '--gate'?"),
        (["decay", "--zzz"], "gradflow decay has no option --zzz. See gradflow decay --help."),
        (["decay", "--steps"], "requires an argument"),
        (["decay", "extra"], "unexpected extra argument"),
        (["decay", "--gate", "1.0"], "--gate must lie strictly between 0 and 1"),
        (["decay", "--format", "xml"], "--format knows no 'xml'"),
        (["decay", "--norm", "frob"], "--norm must be one of a few names; got 'frob'. Did you"),
        (["decay", "--config", "decy"], "'decy' is neither. Did you mean 'decay'?"),
        (["decay", "--cell", "lsmt"], "Did you mean 'lstm'?"),
        (["decay", "--cell", "gru", "--state", "c"], "--state"),
        (["decay", "--out", "file"], "a file is in the way"),
        (["doctor", "--seed", "x"], "--seed must be a whole number"),
    ],
)
def test_a_wrong_request_is_one_message_with_the_cure(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], words: str
):
    """The flag is named, the nearest name offered, and nothing is written."""
    (tmp_path / "file").write_text("mine")
    answer = in_process(capsys, *arguments)
    assert answer.code == 2
    assert words in answer.err
    assert answer.err.startswith("Error: ")
    assert answer.out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("torch", "raise OSError('libtorch_cpu.so: cannot open')", "libtorch_cpu.so"),
        ("torch", "import no_such_module_of_torch", "no_such_module_of_torch"),
        ("numpy", "raise ImportError('multiarray failed to import')", "multiarray"),
        ("pydantic", "raise RuntimeError('another machine')", "gradflow needs pydantic"),
    ],
)
def test_a_broken_package_is_told_as_such(tmp_path: Path, name: str, body: str, words: str):
    """A package that cannot be imported is no fault of ours, and `gradflow doctor` says more."""
    package = tmp_path / "site-packages" / name
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(body)
    answer = in_shell(tmp_path, "decay", path=package.parent)
    assert answer.code == 2
    assert "cannot be imported here" in answer.err
    assert words in answer.err
    assert "Traceback" not in answer.err


WAITING = """
import sys, time, types
stand_in = types.ModuleType("gradflow.experiments.decay")
def run_decay(settings, progress):
    print("ready", file=sys.stderr, flush=True)
    time.sleep(60)
stand_in.run_decay = run_decay
sys.modules[stand_in.__name__] = stand_in
sys.argv = ["gradflow", "decay"]
from gradflow.__main__ import main
sys.exit(main())
"""


def test_control_c_ends_a_run_with_130_and_leaves_nothing_half_written(tmp_path: Path):
    """One line, no traceback, and no run folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "Interrupted: nothing more was saved.\n"
    assert out == ""
    assert list(tmp_path.iterdir()) == []
