"""A report in short: the record that is stored as `report.json`, and the table on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradflow.present.outputs import Outputs, Row
from gradflow.present.report.files import figure_files
from gradflow.present.report.model import Report, ReportEntry, ReportSection
from gradflow.present.tables import Cells, Column, TextTable
from gradflow.records import Check
from gradflow.records.report import ReportResult, ShownResult


def report_result(
    report: Report, *, config: Mapping[str, Any], environment: Mapping[str, Any]
) -> ReportResult:
    """Return the record of a report: the checks of all results, and that all were shown."""
    checks = [
        Check(f"{entry.anchor}: {check.name}", check.passed, check.detail)
        for entry in report.entries
        for check in entry.checks
    ]
    missing = "; ".join(f"{entry.folder}: {entry.reason}" for entry in report.left_out)
    shown = f"{len(report.entries)} shown"
    checks.append(Check("every result could be shown", not missing, missing or shown))
    return ReportResult(
        title=report.title,
        verdict=report.verdict,
        shown=tuple(
            _shown(section, entry) for section in report.sections for entry in section.entries
        ),
        left_out=report.left_out,
        checks=tuple(checks),
        config=dict(config),
        environment=dict(environment),
    )


def report_outputs(result: ReportResult) -> Outputs:
    """Return what the command shows: a row per result, and what was left out below."""
    return Outputs(table=report_table(result), tables={"report": report_rows(result)})


def report_table(result: ReportResult) -> TextTable:
    """Return the table: a row per result with its checks and its folder, its finding below."""
    columns = (
        Column("result", numeric=False),
        Column("checks\npassed"),
        Column("folder", numeric=False),
    )
    findings = tuple(f"{entry.anchor}: {entry.finding}" for entry in result.shown)
    missing = tuple(f"Left out {entry.folder}: {entry.reason}" for entry in result.left_out)
    return TextTable(
        title=f"{result.title}. {result.verdict}",
        columns=columns,
        sections=(tuple(map(_cells, result.shown)),),
        notes=(*findings, *missing),
    )


def report_rows(result: ReportResult) -> list[Row]:
    """Return one CSV row per result."""
    names = ("anchor", "command", "folder", "checks", "checks_passed", "finding", "reproduce")
    return [{name: getattr(entry, name) for name in names} for entry in result.shown]


def _cells(entry: ShownResult) -> Cells:
    return (entry.anchor, f"{entry.checks_passed}/{entry.checks}", entry.folder)


def _shown(section: ReportSection, entry: ReportEntry) -> ShownResult:
    digest = entry.run.result.environment.get("settings_sha256")
    return ShownResult(
        anchor=entry.anchor,
        command=section.question.command,
        question=section.question.title,
        folder=entry.run.folder,
        finding=entry.finding,
        checks=len(entry.checks),
        checks_passed=len(entry.checks) - len(entry.failed),
        settings_sha256=None if digest is None else str(digest),
        reproduce=entry.reproduce,
        figures=tuple(figure_files(entry)),
        tables=tuple(f"tables/{entry.anchor}-{name}.csv" for name in entry.tables),
    )
