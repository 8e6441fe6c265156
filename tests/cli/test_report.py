"""`gradflow report` from the shell: stored results in, a page out, and nothing measured."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gradflow
from gradflow import store
from gradflow.config import settings_toml
from gradflow.experiments import report as studying
from gradflow.records.report import ReportResult
from tests.cli.terminal import in_process
from tests.present.report.stored import Page

FAST = ["--figure-format", "svg", "--quiet"]


def store_step(folder: str, **settings: object) -> str:
    """Store a step worked by hand, and return its folder."""
    asked = gradflow.StepSettings(figure=True, **settings)
    result = gradflow.run_step(asked)
    config = settings_toml("step", asked)
    store.save_run(Path(folder), result.to_json(), config=config, tables={}, figures={})
    return folder


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_report_leaves_a_page_and_its_files(capsys: pytest.CaptureFixture[str]) -> None:
    """Page, Markdown, record, settings, figures in three formats and tables; the page is named."""
    folder = store_step("a")
    answer = in_process(capsys, "report", folder, "--out", "r", "--title", "Of <one> step")
    assert answer.code == 0
    names = {p.relative_to("r").as_posix() for p in Path("r").rglob("*") if p.is_file()}
    assert names == {
        "config.toml",
        "figures/step-1.pdf",
        "figures/step-1.png",
        "figures/step-1.svg",
        "report.html",
        "report.json",
        "report.md",
        "tables/step-1-step.csv",
    }
    assert answer.err.splitlines()[-1] == "r/report.html"
    assert "step-1" in answer.out
    page = Page(Path("r/report.html").read_text(encoding="utf-8"))
    assert page.all("h1")[0].text == "Of <one> step"
    assert tomllib.loads(Path("r/config.toml").read_text())["runs"] == ["a"]


def test_json_is_the_record_of_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    """One strict document, the same as report.json; it can be read back."""
    store_step("a")
    answer = in_process(capsys, "report", "a", "--out", "r", "--format", "json", *FAST)
    document = json.loads(answer.out, parse_constant=pytest.fail)
    assert document == json.loads(Path("r/report.json").read_text())
    assert document["schema"] == "gradflow/report/1"
    result = ReportResult.from_json(document)
    assert result.passed
    (entry,) = result.shown
    assert entry.finding.startswith("LSTM after one step: c=0.9")
    assert entry.reproduce == "gradflow step --figure"
    rows = in_process(capsys, "report", "a", "--out", "r", "--format", "csv", *FAST).out
    assert rows.splitlines()[0] == "anchor,command,folder,checks,checks_passed,finding,reproduce"


def test_what_is_missing_or_broken_is_named_and_the_rest_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 1: it ran, and not everything that was asked for is there."""
    store_step("good")
    for name, text in {
        "torn": '{"schema": "gradflow/step/1", "resu',
        "empty": '{"schema": "gradflow/step/1"}',
        "list": '{"schema": "gradflow/step/1", "results": [], "config": 1, "environment": 2}',
        "newer": '{"schema": "gradflow/step/9"}',
        "other": '{"kind": "a photograph"}',
    }.items():
        Path(name).mkdir()
        Path(name, "result.json").write_text(text)
    bad = ["gone", "torn", "empty", "list", "newer", "other"]
    answer = in_process(capsys, "report", *bad[:3], "good", *bad[3:], "--out", "r", *FAST)
    assert answer.code == 1
    document = json.loads(Path("r/report.json").read_text())
    assert [entry["folder"] for entry in document["results"]["shown"]] == ["good"]
    assert [entry["folder"] for entry in document["results"]["left_out"]] == bad
    page = Page(Path("r/report.html").read_text(encoding="utf-8"))
    (section,) = page.all("section", id="left-out")
    assert all(name in section.text for name in bad)
    assert "Check failed: every result could be shown" in answer.err


def test_with_nothing_to_show_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong request ends with 2, with what to do, and leaves no folder."""
    nothing = in_process(capsys, "report")
    assert nothing.code == 2
    assert "gradflow report --config report" in nothing.err
    gone = in_process(capsys, "report", "gone", "too", "--out", "r")
    assert gone.code == 2
    assert gone.err.startswith("Error: of 2 folders none can be shown:")
    assert "'gone" in gone.err
    assert not Path("r").exists()
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--figure-format", "gif"],
            "--figure-format must name formats of figure files; got 'gif'",
        ),
        (["--style", "papre"], "Did you mean 'paper'"),
        (["--studies", "decya"], "Did you mean 'decay'"),
        (["--seed", "-1", "--studies", "step"], "--seed must be at least 0"),
        (["--studies", "step", "--config", "step"], "is no known setting"),
    ],
)
def test_a_wrong_request_is_one_message(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    """Exit code 2, the flag and the cure, and no report."""
    store_step("a")
    answer = in_process(capsys, "report", "a", "--out", "r", *arguments)
    assert answer.code == 2
    assert words in answer.err
    assert not Path("r").exists()


def test_a_folder_of_runs_stands_for_its_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """So does the folder of a report for the studies in it; an old report is no missing run."""
    store_step("runs/a")
    store_step("runs/b", c=2.0)
    Path("runs/notes").mkdir()
    first = in_process(capsys, "report", "runs", "--out", "runs/report-1", "--format=json", *FAST)
    shown = json.loads(first.out)["results"]["shown"]
    assert [entry["folder"] for entry in shown] == ["runs/a", "runs/b"]
    every = sorted(path.as_posix() for path in Path("runs").glob("[!n]*"))
    assert "runs/report-1" in every
    again = in_process(capsys, "report", *every, "runs/a", "--out", "r", "--format=json", *FAST)
    assert again.code == 0
    assert len(json.loads(again.out)["results"]["shown"]) == 2


def test_a_report_is_renewed_and_leaves_nothing_old(capsys: pytest.CaptureFixture[str]) -> None:
    """The same request in the same folder: figures that are no more are gone."""
    store_step("runs/a")
    store_step("runs/b", c=2.0)
    request = ["report", "runs", "--out", "r", *FAST]
    assert in_process(capsys, *request).code == 0
    assert Path("r/figures/step-2.svg").exists()
    shutil.rmtree("runs/b")
    assert in_process(capsys, *request).code == 0
    assert Path("r/figures/step-1.svg").exists()
    assert not Path("r/figures/step-2.svg").exists()
    assert not Path("r/tables/step-2-step.csv").exists()
    other = in_process(capsys, "report", "runs/a", "--out", "r", *FAST)
    assert other.code == 2
    assert "--force" in other.err
    assert in_process(capsys, "report", "runs/a", "--out", "r", "--force", *FAST).code == 0


def test_a_report_of_stored_results_imports_no_torch(tmp_path: Path) -> None:
    """In a fresh process: results show themselves without what measured them."""
    store_step("a")
    program = (
        "import sys; from gradflow.cli.exits import run;"
        "code = run(['report', 'a', '--out', 'r', '--quiet']);"
        "print(code, sorted({'torch', 'scipy', 'distributed', 'pyplot'} & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert answer.stdout.splitlines()[-1] == "0 []"
    assert (tmp_path / "r" / "report.html").exists()


def test_studies_are_run_kept_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Each is a whole run folder, from which the report can be made again without running it."""
    Path("decay-tiny.toml").write_text('steps = 5\nhidden = 2\ngate = [0.5]\ncell = ["lstm"]\n')
    Path("my.toml").write_text('studies = ["step", "decay-tiny.toml"]\nfigure_format = ["svg"]\n')
    answer = in_process(capsys, "report", "--config", "my.toml", "--out", "r", "--format", "json")
    assert answer.code == 0
    shown = json.loads(answer.out)["results"]["shown"]
    assert [entry["folder"] for entry in shown] == ["r/studies/decay-tiny", "r/studies/step"]
    kept = gradflow.load_result("r/studies/decay-tiny")
    assert kept.config["steps"] == 5
    assert Path("r/studies/decay-tiny/figures/decay.png").exists()
    again = in_process(capsys, "report", "r", "--out", "r2", "--format", "json", *FAST)
    entries = json.loads(again.out)["results"]["shown"]
    assert [entry["finding"] for entry in entries] == [entry["finding"] for entry in shown]
    renewed = in_process(capsys, "report", "--config", "my.toml", "--out", "r", *FAST[2:])
    assert renewed.code == 0


def test_a_seed_holds_for_all_studies(capsys: pytest.CaptureFixture[str]) -> None:
    """Each study has it in its settings, in place of its own."""
    answer = in_process(capsys, "report", "--studies", "step", "--seed", "7", "--out", "r", *FAST)
    assert answer.code == 0
    assert gradflow.load_result("r/studies/step").config["seed"] == 7


def test_a_stopped_report_shows_what_is_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 130; the studies before the stop are kept and on the page."""

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(studying.RUNNERS, "params", stop)
    answer = in_process(capsys, "report", "--studies", "step,params,decay", "--out", "r", *FAST)
    assert answer.code == 130
    document = json.loads(Path("r/report.json").read_text())
    assert [entry["command"] for entry in document["results"]["shown"]] == ["step"]
    assert [entry["folder"] for entry in document["results"]["left_out"]] == ["r/studies/params"]
    assert "interrupted" in document["environment"]
    assert not Path("r/studies/decay").exists()
