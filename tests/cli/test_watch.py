"""`gradflow watch LOG` from the command line to its files and exit code."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import gradflow
from gradflow.records.watch import WatchRun
from gradflow.watching.findings import FindingMemory
from gradflow.watching.log import FlowLog
from tests.cli.terminal import in_process
from tests.data.watched_runs import flow_layer, flow_sample

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `training`, the log of a model whose gradient came to reach 31 of 60 steps."""
    monkeypatch.chdir(tmp_path)
    memory = FindingMemory()
    log = FlowLog(Path("training"), config={"every": 100}, environment={"gradflow": "0"})
    for index, factor in enumerate([0.1] * 4 + [0.8] * 4):
        sample = flow_sample(100 * index, flow_layer(factor, 60))
        log.write(sample, memory.new_of(sample))
    log.close()


def test_a_log_becomes_a_whole_run(capsys: Capture):
    """Table, CSV files, figures, settings and the document, which reads back as the same record."""
    answer = in_process(capsys, "watch", "training", "--out", "shown")
    assert answer.code == 0
    assert "update 400: horizon of rnn, layer 0, 3 to 31" in answer.out
    assert "GF101 warning" in answer.out
    names = {p.relative_to("shown").as_posix() for p in Path("shown").rglob("*") if p.is_file()}
    tables = {"watch.csv", "profiles.csv", "findings.csv"}
    assert names == {
        "result.json", "config.toml", "figures/watch.png", "figures/watch.svg", *tables,
    }  # fmt: skip
    result = gradflow.load_result("shown")
    assert isinstance(result, WatchRun)
    assert result.training["config"] == {"every": 100}
    assert result.samples == gradflow.load_result("training").samples


@pytest.mark.parametrize("named", ["training", "training/watch.jsonl"])
def test_json_is_one_strict_document_with_every_sample(capsys: Capture, named: str):
    """The log's file and its folder are the same training."""
    answer = in_process(capsys, "watch", named, "--format", "json")
    document = json.loads(answer.out, parse_constant=pytest.fail)
    assert document["schema"] == "gradflow/watch/1"
    assert [sample["update"] for sample in document["results"]["samples"]] == list(
        range(0, 800, 100)
    )
    assert [finding["code"] for finding in document["results"]["findings"]] == ["GF101"]


def test_csv_has_a_row_for_each_sample_and_layer(capsys: Capture):
    """With the horizon, for a spreadsheet."""
    answer = in_process(capsys, "watch", "training", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(answer.out)))
    assert len(rows) == 8
    assert float(rows[0]["horizon"]) == pytest.approx(3.0)


def test_a_need_judges_a_recorded_training_again(capsys: Capture):
    """Against 20 steps the first horizon is an error, against 2 nothing is."""
    needy = in_process(capsys, "watch", "training", "--needs-lag", "20", "--fail-on", "error")
    assert needy.code == 1
    assert "20 steps back are needed" in needy.out
    assert "Check failed: no finding at or above error (found GF101 at 0)" in needy.err
    modest = in_process(capsys, "watch", "training", "--needs-lag", "2", "--fail-on", "warning")
    assert modest.code == 0
    assert "gradient flow is fine" in modest.out


def test_a_finding_fails_nothing_unless_asked(capsys: Capture):
    """Looking at a training is no test of it."""
    assert in_process(capsys, "watch", "training").code == 0
    assert in_process(capsys, "watch", "training", "--fail-on", "warning").code == 1
    assert in_process(capsys, "watch", "training", "--fail-on", "error").code == 0


def test_a_log_that_is_cut_off_is_shown_as_far_as_it_goes(capsys: Capture):
    """The training was killed while it wrote."""
    log = Path("training/watch.jsonl")
    log.write_bytes(log.read_bytes()[:-100])
    answer = in_process(capsys, "watch", "training", "--format", "csv")
    assert len(answer.out.splitlines()) == 1 + 7
    assert "Note: The last line of the log was cut off" in answer.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name its log, or the run folder"),
        (["nowhere"], "there is none at 'nowhere'"),
        (["."], r"there is none at 'watch.jsonl'"),
        (["training", "--state", "x"], "--state"),
        (["training", "--needs-lag", "0"], "--needs-lag"),
    ],
)
def test_a_wrong_request_is_told_and_leaves_nothing(
    capsys: Capture, arguments: list[str], message: str
):
    """Exit code 2, and no run folder."""
    answer = in_process(capsys, "watch", *arguments)
    assert answer.code == 2
    assert message in answer.err
    assert not Path("runs").exists()


def test_a_report_takes_the_folder_of_a_training_like_any_run(capsys: Capture):
    """It has no result.json, and needs none."""
    answer = in_process(capsys, "report", "training", "--out", "page")
    assert answer.code == 0
    assert "GF101" in Path("page/report.md").read_text()


def test_a_recorded_training_is_shown_without_torch():
    """On a laptop that has the log and not the model."""
    program = (
        "import sys; from gradflow.cli.exits import run; code = run(['watch', 'training', '-h']);"
        "from gradflow.present.watch import watch_outputs;"
        "from gradflow.watching.recorded import run_watch; from gradflow import WatchSettings;"
        "watch_outputs(run_watch(WatchSettings(log='training')));"
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=100)
    assert done.returncode == 0, done.stderr.decode()
