"""The report as Markdown: the same words, figures as files beside it."""

from __future__ import annotations

import re

from gradflow.present.report import report_files
from gradflow.present.report.markdown import page_markdown
from tests.present.report.stored import whole_report


def test_every_picture_is_a_file_of_the_report() -> None:
    """The sharpest form that was asked for, with its alt text."""
    text = page_markdown(whole_report())
    pictures = re.findall(r"!\[.+?\]\((.+?)\)$", text, flags=re.MULTILINE)
    figures = [figure for entry in whole_report().entries for figure in entry.figures]
    assert len(pictures) == len(figures)
    assert set(pictures) <= set(report_files(whole_report()))


def test_it_says_what_the_page_says() -> None:
    """Verdict, questions, formulas, findings, command lines, what was left out."""
    text = page_markdown(whole_report())
    assert text.startswith("# Gradient flow in recurrent networks\n\n**")
    plain = text.replace("\\", "")
    for section in whole_report().sections:
        assert f"## {section.question.title}" in text
        for statement in section.question.statements:
            assert all(formula.tex in text for formula in statement.formulas)
    for entry in whole_report().entries:
        assert entry.finding.replace("\\", "") in plain
        assert f"`{entry.reproduce}`" in text
    assert "- `runs/gone`: there is no result.json" in text


def test_tables_are_tables() -> None:
    """Each row has as many cells as its heading, and numbers stand right."""
    lines = page_markdown(whole_report()).splitlines()
    rules = [index for index, line in enumerate(lines) if re.fullmatch(r"\|( -{3}:? \|)+", line)]
    assert len(rules) > 2 * len(whole_report().sections)
    for index in rules:
        width = _cells(lines[index])
        rows = [lines[index - 1]]
        following = index + 1
        while following < len(lines) and lines[following].startswith("|"):
            rows.append(lines[following])
            following += 1
        assert len(rows) > 1
        assert {_cells(row) for row in rows} == {width}
    assert any("---:" in lines[index] for index in rules)


def _cells(line: str) -> int:
    return len(re.findall(r"(?<!\\)\|", line)) - 1
