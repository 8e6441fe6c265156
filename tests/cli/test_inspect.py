"""`gradflow inspect` and `gradflow explain` from the shell: what fails, and what is said."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import torch
from torch import nn

import gradflow
from gradflow.present.inspect_formats import github_text, junit_text
from gradflow.records.finding_codes import FINDING_KINDS
from tests.cli.terminal import in_process

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "forecaster.py"
DATA = ["--data", f"{EXAMPLE}:make_batch"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """A file of weights of a small LSTM with a head."""
    torch.manual_seed(0)
    model = nn.ModuleDict({"rnn": nn.LSTM(3, 6), "head": nn.Linear(6, 1)})
    path = tmp_path / "model.pt"
    torch.save({"model": model.state_dict(), "step": 7}, path)
    return path


def test_a_file_of_weights_is_enough(capsys: pytest.CaptureFixture[str], weights: Path):
    """One document, a folder that reads back, and exit code 0 without a need."""
    answer = in_process(capsys, "inspect", str(weights), "--format", "json", "--out", "run")
    assert answer.code == 0, answer.err
    document = json.loads(answer.out)
    assert document["schema"] == "gradflow/inspect/1"
    assert [layer["name"] for layer in document["results"]["layers"]] == ["rnn"]
    assert gradflow.load_result("run").verdict == tuple(document["results"]["verdict"])
    assert Path(answer.err.splitlines()[-1]) == Path("run/figures/inspect.png")
    assert Path("run/findings.csv").is_file()


@pytest.mark.parametrize(
    ("asked", "passed"),
    [
        ({}, False),
        ({"fail_on": "never"}, True),
        ({"ignore": "GF101"}, True),
        ({"select": "GF2"}, True),
    ],
)
def test_a_need_that_is_not_met_fails_unless_asked_not_to(
    weights: Path, asked: dict[str, str], passed: bool
):
    """An untrained LSTM forgets within 18 steps; 60 are needed."""
    settings = gradflow.InspectSettings(file=str(weights), needs_lag=60, **asked)
    result = gradflow.run_inspect(settings)
    assert result.passed == passed
    found = {finding.code for finding in result.findings}
    assert ("GF101" in found) == (not asked or "fail_on" in asked)


def test_the_verdict_comes_first(capsys: pytest.CaptureFixture[str], weights: Path):
    """Three lines a person can act on."""
    answer = in_process(capsys, "inspect", str(weights), "--steps", "30")
    first, second, third = answer.out.splitlines()[:3]
    assert "gradient flow is fine; look elsewhere" in first
    assert second.startswith("Memory horizon: ")
    assert "30 steps" in third


def test_a_module_with_data_is_run_as_it_is(capsys: pytest.CaptureFixture[str]):
    """The example's mistake is an error; mended, there is nothing to say."""
    wrong = in_process(capsys, "inspect", "--model", f"{EXAMPLE}:make_model", *DATA)
    assert wrong.code == 1
    assert "GF107" in wrong.out.splitlines()[0]
    settings = gradflow.InspectSettings(model=f"{EXAMPLE}:make_mended", data=DATA[1])
    right = gradflow.run_inspect(settings)
    assert right.passed
    assert "look elsewhere" in right.verdict[0]


def test_a_module_takes_its_weights_from_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """With prefixes looked through: a horizon that the saved weights have, and no others."""
    model = gradflow.checkpoints.load_object(f"{EXAMPLE}:make_mended")()
    with torch.no_grad():
        model.rnn.bias_ih_l0[16:32] = 6.0
    torch.save({f"module.{n}": p for n, p in model.state_dict().items()}, tmp_path / "w.pt")
    flags = ["--model", f"{EXAMPLE}:make_mended", "--checkpoint", "w.pt", "--format", "json"]
    answer = in_process(capsys, "inspect", *flags, *DATA)
    (layer,) = json.loads(answer.out)["results"]["layers"]
    assert layer["gates"]["update"]["effective_bias_mean"] > 5
    assert layer["horizon"] is None


def test_a_series_is_cut_into_windows(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """A line a step, a column that is predicted; numbers in the thousands are told."""
    lines = [f"{3000 + 10 * t},{t % 7},{t % 3}" for t in range(80)]
    (tmp_path / "series.csv").write_text("price,day,kind\n" + "\n".join(lines) + "\n")
    flags = ["--data", "series.csv", "--window", "20", "--target", "price", "--loss", "mse"]
    answer = in_process(
        capsys, "inspect", "--model", f"{EXAMPLE}:make_mended", *flags, "--format", "json"
    )
    results = json.loads(answer.out)["results"]
    assert results["input"]["shape"] == [60, 20, 3]
    assert "GF304" in {finding["code"] for finding in results["findings"]}
    assert len(results["layers"][0]["log10_dL_dh"]) == 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "needs something to look at"),
        (["nothing.pt"], "nothing.pt"),
        (["--model", "nothing.py:make"], "nothing.py"),
        (["model.pt", "--data", "series.csv"], "needs --window"),
        (["model.pt", "--fail-on", "often"], "--fail-on"),
        (["model.pt", "--needs-lag", "0"], "--needs-lag"),
    ],
)
def test_a_wrong_request_is_one_message(
    capsys: pytest.CaptureFixture[str], weights: Path, arguments: list[str], message: str
):
    """Exit code 2, no traceback, the flag by its name."""
    assert weights.exists()
    answer = in_process(capsys, "inspect", *arguments)
    assert answer.code == 2
    assert message in answer.err
    assert "Traceback" not in answer.err


def test_the_rows_are_by_lag(capsys: pytest.CaptureFixture[str], weights: Path):
    """A row for each layer, direction and lag, from lag 0 at 10^0."""
    answer = in_process(capsys, "inspect", str(weights), "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(answer.out)))
    assert (rows[0]["lag"], float(rows[0]["log10_norm"])) == ("0", 0.0)
    assert float(rows[-1]["log10_norm"]) < -5


def test_a_baseline_leaves_only_what_is_new(capsys: pytest.CaptureFixture[str], weights: Path):
    """What was known is no failure again; a new need is."""
    flags = ["inspect", str(weights), "--needs-lag", "60"]
    assert in_process(capsys, *flags, "--out", "old").code == 1
    again = in_process(capsys, *flags, "--baseline", "old/result.json")
    assert again.code == 0
    assert "nothing new" in again.out.splitlines()[0]
    assert "look elsewhere" not in again.out
    twice = torch.load(weights, weights_only=True)
    for name in ("rnn.bias_ih_l0", "rnn.bias_hh_l0"):
        twice["model"][name][6:12] = 1.0
    torch.save(twice, "twice.pt")
    settings = gradflow.InspectSettings(file="twice.pt", fail_on="warning", baseline="old")
    assert "GF201" in {finding.code for finding in gradflow.run_inspect(settings).findings}


def test_builds_read_findings_as_annotations_and_as_junit(
    capsys: pytest.CaptureFixture[str], weights: Path
):
    """GitHub's commands, one a line; JUnit's failures, one a layer."""
    flags = ["inspect", str(weights), "--needs-lag", "60", "--format"]
    suite = ElementTree.fromstring(in_process(capsys, *flags, "junit").out)
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert "GF101" in suite.find("testcase/failure").text
    wrong = gradflow.run_inspect(gradflow.InspectSettings(file=str(weights), needs_lag=60))
    lines = github_text(wrong).splitlines()
    assert any(line.startswith("::error title=GF101 vanishing") for line in lines)
    healthy = gradflow.run_inspect(gradflow.InspectSettings(file=str(weights)))
    assert ElementTree.fromstring(junit_text(healthy)).get("failures") == "0"


def test_every_code_is_explained(capsys: pytest.CaptureFixture[str]):
    """What it means, when it is given, what to try; a wrong code gets the nearest."""
    titles = in_process(capsys, "explain").out.splitlines()
    assert [line.split()[0] for line in titles] == list(FINDING_KINDS)
    one = in_process(capsys, "explain", "gf103")
    assert one.code == 0
    for word in ("graph cut", "When: ", "What to try: "):
        assert word in one.out
    wrong = in_process(capsys, "explain", "GF999")
    assert wrong.code == 2
    assert "Known: GF100" in wrong.err
    row = json.loads(in_process(capsys, "explain", "GF101", "--format", "json").out)
    assert row["results"]["findings"][0]["title"] == "vanishing through time"
