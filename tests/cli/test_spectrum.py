"""`gradflow spectrum` and `gradflow decay --paths` from the shell."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import gradflow
from tests.cli.terminal import SMALL, in_process, in_shell

TINY = ["--hidden", "3", "--steps", "20", "--warmup", "5"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_spectrum_leaves_a_whole_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The document, the settings, the table and both figures; read back it is the same result."""
    answer = in_process(capsys, "spectrum", *TINY, "--out", "run")
    assert answer.code == 0
    names = {p.relative_to("run").as_posix() for p in Path("run").rglob("*") if p.is_file()}
    assert names == {
        "config.toml",
        "spectrum.csv",
        "figures/spectrum.png",
        "figures/spectrum.svg",
        "result.json",
    }
    assert "Lyapunov exponents of the LSTM" in answer.out
    result = gradflow.load_result(tmp_path / "run")
    assert isinstance(result, gradflow.records.SpectrumResult)
    assert result.count == 6


def test_json_has_exponents_errors_sum_and_dimension(capsys: pytest.CaptureFixture[str]) -> None:
    """One strict document; a chaotic network has a positive dimension."""
    arguments = ["--cell", "rnn", "--gain", "3", "--hidden", "20", "--steps", "200"]
    answer = in_process(capsys, "spectrum", *arguments, "--format", "json")
    document = json.loads(answer.out, parse_constant=pytest.fail)
    results = document["results"]
    assert len(results["exponents"]) == len(results["standard_errors"]) == 20
    assert results["sum"] == pytest.approx(sum(results["exponents"]))
    assert 0 < results["kaplan_yorke_dimension"] < 20
    assert document["config"]["gain"] == 3.0
    assert all(check["passed"] for check in document["checks"])


def test_data_is_read_from_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    """The file's columns are the inputs; a file that is not there is a wrong request."""
    np.savetxt("x.csv", np.random.default_rng(0).standard_normal((30, 2)), delimiter=",")
    answer = in_process(
        capsys, "spectrum", "--hidden", "3", "--warmup", "5", "--data", "x.csv", "--format", "json"
    )
    assert answer.code == 0
    results = json.loads(answer.out)["results"]
    assert (results["steps"], results["input"]["width"]) == (25, 2)
    missing = in_process(capsys, "spectrum", *TINY, "--data", "y.csv")
    assert missing.code == 2
    assert missing.err.startswith("Error: --data cannot read 'y.csv'")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--gain", "-1"], "--gain must be at least 0"),
        (["--count", "99"], "a state of 6 numbers has as many exponents; got count 99"),
        (["--cell", "lsmt"], "Did you mean 'lstm'"),
        (["--input", "zeros"], "Did you mean 'zero'"),
        (["--warmup", "-1"], "--warmup must be at least 0"),
    ],
)
def test_a_wrong_request_is_one_message(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    """Exit code 2, the flag and the cure, and no run folder."""
    answer = in_process(capsys, "spectrum", *TINY, *arguments)
    assert answer.code == 2
    assert words in answer.err
    assert answer.out == ""
    assert not Path("runs").exists()


def test_paths_are_asked_for_by_a_flag(capsys: pytest.CaptureFixture[str]) -> None:
    """`decay --paths` answers in the table, in a CSV of its own, in a figure and in the JSON."""
    answer = in_process(capsys, "decay", *SMALL, "--paths", "--out", "run")
    assert answer.code == 0
    assert "Is f^T/z^T the right model here? For 2 of 2" in answer.out
    assert Path("run/paths.csv").exists()
    assert Path("run/figures/paths.png").exists()
    results = json.loads(Path("run/result.json").read_text())["results"]
    assert [entry["cell"] for entry in results["paths"]] == ["lstm", "gru"]
    again = in_process(capsys, "decay", "--config", "run/config.toml", "--out", "again")
    assert again.code == 0
    assert Path("again/paths.csv").read_text() == Path("run/paths.csv").read_text()


def test_a_config_file_can_ask_for_paths(capsys: pytest.CaptureFixture[str]) -> None:
    """`paths = true` in TOML, and --no-paths over it."""
    Path("my.toml").write_text("paths = true\n")
    for flags, expected in (([], True), (["--no-paths"], False)):
        answer = in_process(
            capsys, "decay", *SMALL, "--config", "my.toml", "--format", "json", *flags
        )
        assert ("paths" in json.loads(answer.out)["results"]) is expected


def test_standard_output_carries_the_result_alone(tmp_path: Path) -> None:
    """What a user's cell writes past Python, as C libraries do, goes to standard error."""
    (tmp_path / "loud.py").write_text(
        "import ctypes, os, torch\n"
        "class Loud(torch.nn.RNNCell):\n"
        "    def forward(self, x, h):\n"
        "        os.write(1, b'from the descriptor')\n"
        "        ctypes.CDLL(None).printf(b'from C')\n"
        "        print('from Python')\n"
        "        return super().forward(x, h)\n"
        "def make_cell():\n"
        "    return Loud(1, 2)\n"
    )
    answer = in_shell(
        tmp_path, "spectrum", "--cell", "loud.py:make_cell", *TINY[2:], "--format=json"
    )
    assert json.loads(answer.out)["schema"] == "gradflow/spectrum/1"
    for words in ("from the descriptor", "from C", "from Python"):
        assert words in answer.err
