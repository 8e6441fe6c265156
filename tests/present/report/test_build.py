"""A report puts results in order, numbers what it shows, and names what it cannot show."""

from __future__ import annotations

import math
import textwrap
from dataclasses import replace
from pathlib import Path

from gradflow.documents import csv_text
from gradflow.present.notebook import PRESENTERS
from gradflow.present.report import build_report, report_files, report_outputs, report_result
from gradflow.present.report.build import MOST_ROWS
from gradflow.present.report.questions import QUESTIONS
from gradflow.records import Check, Result
from gradflow.records.report import LeftOut, ReportResult, StoredRun
from tests.present.decays import two_rows
from tests.present.every_figure import COMMANDS, result_of
from tests.present.report.stored import Broken, Page, decay_run, whole_page, whole_report


def test_every_command_that_draws_has_words() -> None:
    """A question is asked in words, not by the name of its command."""
    assert set(PRESENTERS) <= set(QUESTIONS)
    for question in QUESTIONS.values():
        assert question.title.endswith("?")
        assert question.shows
        assert question.shows_not


def test_results_stand_by_question_in_one_order() -> None:
    """However the folders were named, a reader meets the same order."""
    runs = [StoredRun(name, result_of(name)) for name in ("step", "params")]
    runs = [decay_run("b"), *runs, decay_run("a")]
    report = build_report(runs, formats=())
    assert [section.anchor for section in report.sections] == ["decay", "params", "step"]
    assert [entry.anchor for entry in report.entries][:2] == ["decay-1", "decay-2"]
    assert [entry.run.folder for entry in report.entries][:2] == ["b", "a"]
    numbers = [figure.number for entry in report.entries for figure in entry.figures]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_result_that_cannot_be_drawn_is_named_and_the_rest_is_shown() -> None:
    """One damaged record does not cost the others their page."""
    report = build_report([decay_run(), StoredRun("bad", Broken()), decay_run()], formats=())
    assert [entry.anchor for entry in report.entries] == ["decay-1", "decay-2"]
    (missing,) = report.left_out
    assert missing.folder == "bad"
    assert "KeyError" in missing.reason
    assert not report.passed
    assert report.verdict.endswith("1 of 3 could not be shown.")


def test_a_command_without_words_still_has_a_section(monkeypatch: object) -> None:
    """A result of a newer kind shows its checks, and its figures where something draws it."""

    class News(Result):
        command = "news"

    checks = (Check("it is new", True, "today"),)
    report = build_report([StoredRun("n", News(checks=checks))], formats=())
    (entry,) = report.entries
    assert entry.finding == "The one check passed."
    assert report.sections[0].question.title == "gradflow news"
    files = report_files(report)
    assert b"it is new" in files["report.html"]
    assert b"it is new" in files["report.md"]


def test_files_of_a_report_are_where_page_and_markdown_say() -> None:
    """Figures in each format that was asked for, a CSV for each table, and no other."""
    report = build_report([decay_run()], formats=("png", "svg", "pdf"))
    files = report_files(report)
    assert sorted(files) == [
        "figures/decay-1.pdf",
        "figures/decay-1.png",
        "figures/decay-1.svg",
        "report.html",
        "report.md",
        "tables/decay-1-curves.csv",
        "tables/decay-1-decay.csv",
    ]
    assert files["figures/decay-1.png"].startswith(b"\x89PNG")
    assert files["figures/decay-1.pdf"].startswith(b"%PDF")
    (entry,) = report.entries
    assert files["tables/decay-1-decay.csv"].decode() == csv_text(entry.tables["decay"])
    assert b"(figures/decay-1.svg)" in files["report.md"]


def test_paper_is_the_style_of_the_files_alone() -> None:
    """The page keeps the screen's figures, whose titles it needs."""
    screen, paper = (
        build_report([decay_run()], style=style, formats=("svg",)).entries[0].figures[0]
        for style in ("screen", "paper")
    )
    assert screen.svg == paper.svg == screen.files["decay-1.svg"]
    assert paper.files["decay-1.svg"] != paper.svg


def test_the_record_of_a_report_tells_all_and_comes_back() -> None:
    """report.json: results with findings, checks, files and command lines; what was left out."""
    report = whole_report()
    result = report_result(report, config={"runs": ["runs"]}, environment={"seconds": 1.0})
    assert [entry.anchor for entry in result.shown] == [entry.anchor for entry in report.entries]
    assert not result.passed
    assert result.checks[-1] == Check(
        "every result could be shown", False, "runs/gone: there is no result.json"
    )
    assert len(result.checks) == len(report.checks) + 1
    assert result.left_out == (LeftOut("runs/gone", "there is no result.json"),)
    files = report_files(report)
    listed = {name for entry in result.shown for name in (*entry.figures, *entry.tables)}
    assert listed | {"report.html", "report.md"} == set(files)
    assert ReportResult.from_json(result.to_json()) == result
    rows = report_outputs(result).rows
    assert [row["anchor"] for row in rows] == [entry.anchor for entry in report.entries]


def test_settings_and_provenance_are_told_in_full() -> None:
    """Each setting, versions, the digest and the call; a list without brackets."""
    environment = {"argv": ["/opt/x/bin/gradflow", "decay", "a b"], "torch": "2.13.0", "seed": 0}
    report = build_report([decay_run(environment=environment)], formats=())
    (entry,) = report.entries
    assert dict(entry.settings)["hidden"] == "64"
    told = dict(entry.provenance)
    assert told["called as"] == "gradflow decay 'a b'"
    assert told["torch"] == "2.13.0"
    assert told["folder"] == "runs/decay"


def test_every_command_is_on_the_page() -> None:
    """All that can be drawn today has a section."""
    ids = {section.attributes["id"] for section in Page(whole_page()).all("section")}
    assert set(COMMANDS) <= ids


def test_the_decay_says_how_near_the_trend_is() -> None:
    """In closed form measured and trend are one; with a live candidate f + i o is kept."""
    (entry,) = build_report([decay_run()], formats=()).entries
    dead, live = entry.findings
    assert dead == (
        "With a dead candidate, measured equals f^T and z^T exactly for every gate (0.1, 0.5 and "
        "0.9)."
    )
    assert live == (
        "With a live candidate (gain 1), LSTM forget gate 0.1 keeps 0.55 a step; GRU update gate "
        "0.1 keeps 0.55 a step."
    )
    assert entry.finding == f"{dead} {live}"


def test_the_decay_does_not_claim_an_equality_that_is_not() -> None:
    """A level that is off by a factor is told as a rate, a rate that is off as such."""
    result = decay_run().result
    shifted = tuple(replace(c, log10_norm=c.log10_norm + 0.5) for c in result.curves)  # type: ignore[attr-defined]
    moved = build_report([decay_run(curves=shifted)], formats=()).entries[0].findings[0]
    assert "fades at the rate of" in moved
    assert "equals" not in moved
    steeper = tuple(replace(c, log10_norm=2 * c.log10_norm, rate=2 * c.rate) for c in result.curves)  # type: ignore[attr-defined]
    off = build_report([decay_run(curves=steeper)], formats=()).entries[0].findings[0]
    assert f"is off the rate of f^T and z^T, up to {-math.log(0.1):.2g} nats per step" in off


def test_a_run_that_was_stopped_says_so_first() -> None:
    """A part of what was asked for is no whole result, in the verdict too."""
    stopped = decay_run(environment={"interrupted": "3 of 12 curves were measured."})
    (entry,) = build_report([stopped], formats=()).entries
    assert entry.findings[0] == "Stopped early: 3 of 12 curves were measured."
    assert entry.finding.startswith(entry.findings[0])
    assert "0.55 a step" in entry.finding


def test_a_table_of_millions_of_rows_stays_where_it_is() -> None:
    """The page names the file; the report does not double it."""
    long = StoredRun("runs/long", two_rows((0.5,), cells=("lstm",), steps=MOST_ROWS // 4 + 1))
    report = build_report([long], formats=())
    (entry,) = report.entries
    assert entry.too_long == ("curves",)
    assert set(entry.tables) == {"decay"}
    files = report_files(report)
    assert "tables/decay-1-curves.csv" not in files
    assert b"<code>curves.csv</code>" in files["report.html"]


def test_the_python_of_the_page_on_reports_runs() -> None:
    """Pasted after a result of one's own, it makes the page."""
    text = (Path(__file__).parents[3] / "docs" / "report.md").read_text(encoding="utf-8")
    code = text.partition("## In Python")[2]
    names = {"result": two_rows((0.5,), cells=("lstm",))}
    exec(textwrap.dedent(code), names)
    assert b"my run" in names["files"]["report.html"]
