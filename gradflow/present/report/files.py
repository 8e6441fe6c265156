"""The files of a report, by their path in its folder."""

from __future__ import annotations

from gradflow.documents import csv_text
from gradflow.present.report.markdown import page_markdown
from gradflow.present.report.model import Report, ReportEntry
from gradflow.present.report.page import page_html

PAGE = "report.html"


def report_files(report: Report) -> dict[str, bytes]:
    """Return the figures, the CSV tables, the Markdown and, last, the page."""
    files: dict[str, bytes] = {}
    for entry in report.entries:
        files |= figure_files(entry)
        files |= table_files(entry)
    files["report.md"] = page_markdown(report).encode("utf-8")
    files[PAGE] = page_html(report).encode("utf-8")
    return files


def figure_files(entry: ReportEntry) -> dict[str, bytes]:
    """Return path to bytes of a result's figures."""
    return {
        f"figures/{name}": data for figure in entry.figures for name, data in figure.files.items()
    }


def table_files(entry: ReportEntry) -> dict[str, bytes]:
    """Return path to bytes of a result's CSV tables."""
    return {
        f"tables/{entry.anchor}-{name}.csv": csv_text(rows).encode("utf-8")
        for name, rows in entry.tables.items()
    }
