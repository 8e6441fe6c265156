"""`gradflow parity` from the shell: the answer, its exit code, and what it leaves."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
import torch
from torch import nn

import gradflow
from gradflow.records.parity import ParityResult
from tests.cli.terminal import in_process, in_shell
from tests.data import parity_steps

STEPS = Path(parity_steps.__file__)
EXAMPLE = Path(__file__).parents[2] / "examples" / "lstm_step.py"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_example_equals_torchs_cell(capsys: pytest.CaptureFixture[str]):
    """The step function of examples/ holds; the places of its weights are shown."""
    answer = in_process(capsys, "parity", "torch.LSTMCell", f"{EXAMPLE}:lstm_step")
    assert answer.code == 0
    assert answer.out.startswith("Parity holds: A is torch.LSTMCell, B is lstm_step.py:lstm_step")
    assert "weight_ih[5:10]" in answer.out
    assert "W_f[:, 3:8]" in answer.out
    assert "the tolerance 1e-10" in answer.out


def test_a_difference_exits_with_one_and_says_why(capsys: pytest.CaptureFixture[str]):
    """The verdict, the variant and the nearest ones are in the answer; the checks on stderr."""
    answer = in_process(capsys, "parity", "torch.GRUCell", f"{STEPS}:d2l_gru")
    assert answer.code == 1
    assert answer.out.startswith("Parity is broken")
    assert "the sides part at step 1" in answer.out
    assert "resets before the matrix product" in answer.out
    assert "reset before the product" in answer.out
    assert "Check failed: states agree" in answer.err


def test_json_is_one_document_and_the_run_folder_holds_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    """The schema, the comparisons, the mapping; tables and figures beside it; read back."""
    answer = in_process(capsys, "parity", "gru", "--format", "json", "--out", "run")
    document = json.loads(answer.out, parse_constant=pytest.fail)
    assert answer.code == 0
    assert document["schema"] == "gradflow/parity/1"
    results = document["results"]
    assert results["kind"] == "gru"
    assert results["sizes"] == {"input_size": 3, "hidden_size": 5, "steps": 5, "batch": 3}
    assert {entry["passed"] for entry in results["comparisons"]} == {True}
    assert results["b"]["name"] == "torch.GRUCell"
    assert document["config"]["tolerance"] == 1e-10
    names = {path.name for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert names == {
        "result.json", "config.toml", "parity.csv", "mapping.csv", "parity.png", "parity.svg",
    }  # fmt: skip
    stored = gradflow.load_result(tmp_path / "run")
    assert isinstance(stored, ParityResult)
    assert stored.results_json() == results


def test_csv_has_a_row_per_quantity(capsys: pytest.CaptureFixture[str]):
    """Standard output carries the comparisons with every digit."""
    answer = in_process(capsys, "parity", "lstm", "numpy.lstm", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(answer.out)))
    assert {row["group"] for row in rows} >= {"state", "gate", "parameter gradient"}
    assert {row["passed"] for row in rows} == {"True"}


def test_the_preset_and_the_stored_settings_run(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """`--config parity`, and a run's own config.toml."""
    assert in_process(capsys, "parity", "--config", "parity").code == 0
    (folder,) = (tmp_path / "runs").iterdir()
    again = in_process(capsys, "parity", "--config", str(folder / "config.toml"))
    assert again.code == 0
    assert list((tmp_path / "runs").iterdir()) == [folder]


def test_files_of_weights_are_compared_as_they_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    """A layer's file equals itself; with its forget and input gate exchanged it is told so."""
    state = nn.LSTM(3, 4).state_dict()
    torch.save(state, tmp_path / "a.pt")
    swapped = {name: torch.cat([t[4:8], t[0:4], t[8:]]) for name, t in state.items()}
    torch.save(swapped, tmp_path / "b.pt")
    assert in_process(capsys, "parity", "a.pt", "a.pt").code == 0
    answer = in_process(capsys, "parity", "a.pt", "b.pt")
    assert answer.code == 1
    assert "in the order f, i, g, o" in answer.out


def test_options_reach_the_run(capsys: pytest.CaptureFixture[str]):
    """Widths, steps, rows, order and seed, as asked."""
    options = ["--input-size", "2", "--hidden", "3", "--steps", "2", "--batch", "2", "--seed", "4"]
    place = f"{STEPS}:stacked_ifog"
    answer = in_process(capsys, "parity", "torch.LSTM", place, "--gate-order", "i,f,o,g", *options)
    assert answer.code == 0
    assert "input 2, hidden 3, 2 steps, 2 rows" in answer.out
    assert "(seed 4)" in answer.out


def test_user_code_that_prints_leaves_standard_output_alone(tmp_path: Path):
    """One strict document on standard output, in a process of its own."""
    answer = in_shell(tmp_path, "parity", f"{STEPS}:printing_rnn", "--format", "json")
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    assert any("prints in its step" in note for note in document["results"]["notes"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lsmt"], "Did you mean 'lstm'"),
        (["lstm", "gru"], "must be of one kind"),
        (["nowhere.py:cell"], "there is no file nowhere.py"),
        ([f"{STEPS}:nothing"], "has no 'nothing'"),
        ([f"{STEPS}:failing_rnn"], "out of order today"),
        (["gru", "--tolerance", "-1"], "--tolerance must be greater than 0"),
        (["gru", "--start", "nowhere"], "--start must be one of a few names"),
        (["gru", "--weights", "nowhere.pt"], "there is no file 'nowhere.pt'"),
        (["gru", "--data", "nowhere.pt"], "there is no file 'nowhere.pt'"),
        (["gru", "--weight-map", "nowhere.toml"], "--weight-map cannot read"),
        (["gru", "--gate-order", "zz"], "names each of its gates once"),
        (["gru", "gru", "gru"], "unexpected extra argument"),
    ],
)
def test_a_wrong_request_exits_with_two_and_writes_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], words: str
):
    """One message, no traceback, no run folder."""
    answer = in_process(capsys, "parity", *arguments)
    assert answer.code == 2
    assert words in answer.err
    assert answer.out == ""
    assert "Traceback" not in answer.err
    assert not (tmp_path / "runs").exists()


def test_the_pages_commands_do_what_it_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """The first holds; the last compares two right cells and shows nothing."""
    root = Path(__file__).parents[2]
    page = (root / "docs" / "parity.md").read_text(encoding="utf-8")
    commands = [line.split()[1:] for line in page.splitlines() if line.startswith("    gradflow ")]
    assert len(commands) == 2
    monkeypatch.chdir(root)
    codes = [
        in_process(capsys, *command, "--out", str(tmp_path / str(number))).code
        for number, command in enumerate(commands)
    ]
    assert codes == [0, 1]
