"""What a report says of a question beside the numbers; one `Question` for each command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradflow.present.report.formula import Formula


def no_findings(result: Any) -> Sequence[str]:  # noqa: ARG001 - every question is asked alike
    """Return nothing: the checks of the result are its verdict."""
    return ()


@dataclass(frozen=True)
class Statement:
    """What is measured: formulas side by side (they wrap on a narrow page), and their symbols."""

    formulas: tuple[Formula, ...]
    symbols: str


@dataclass(frozen=True)
class Question:
    """The words around the results of one command.

    Args:
        command: the command whose results these are.
        title: the question, as a person asks it.
        statements: what is measured, as formulas with words.
        findings: what a result says, in sentences with numbers; the first of them, as many as
            `in_verdict`, stand in the verdict. Without any the verdict tells its checks.
        shows: what a result of this kind shows.
        shows_not: what it does not show, and what would.
        units: the units of the table's columns.
        captions: figure name to how the figure is read; a figure without one has its name.
        positional: settings that the command line takes without a flag, in order.
        in_verdict: how many findings.
        stored: how the command is asked for what is stored in `{folder}`, where the settings are
            not those of a command line.
    """

    command: str
    title: str
    statements: tuple[Statement, ...] = ()
    findings: Callable[[Any], Sequence[str]] = no_findings
    shows: str = ""
    shows_not: str = ""
    units: str = ""
    captions: Mapping[str, str] = field(default_factory=dict)
    positional: tuple[str, ...] = ()
    in_verdict: int = 1
    stored: str = "--config {folder}/config.toml"
