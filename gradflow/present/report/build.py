"""Makes a report of stored results: words, figures and tables, section by section."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import PurePath
from typing import Any

from matplotlib.figure import Figure

from gradflow.present.notebook import PRESENTERS
from gradflow.present.outputs import Outputs
from gradflow.present.report.embed import PIXELS, few_colors
from gradflow.present.report.model import (
    Facts,
    Report,
    ReportEntry,
    ReportFigure,
    ReportSection,
    checks_sentence,
)
from gradflow.present.report.question import Question
from gradflow.present.report.questions import QUESTIONS, question_of
from gradflow.present.report.reproduce import command_line
from gradflow.present.theme import FigureFormat, alt_text, figure_bytes
from gradflow.records import Result
from gradflow.records.report import LeftOut, StoredRun

Progress = Callable[[str, int, int], None]
MOST_ROWS = 200_000  # of a table that a report copies: longer ones stay in their run folder
_PROVENANCE = {
    "gradflow": "gradflow",
    "git_sha": "commit",
    "settings_sha256": "settings sha256",
    "python": "Python",
    "torch": "torch",
    "numpy": "NumPy",
    "platform": "platform",
    "device": "device",
    "dtype": "dtype",
    "threads": "threads",
    "seed": "seed",
    "started": "started",
    "seconds": "seconds",
    "interrupted": "interrupted",
    "argv": "called as",
}


def build_report(
    runs: Sequence[StoredRun],
    left_out: Sequence[LeftOut] = (),
    *,
    title: str = "Gradient flow in recurrent networks",
    style: str = "screen",
    formats: Sequence[FigureFormat] = ("png", "svg", "pdf"),
    progress: Progress | None = None,
) -> Report:
    """Return the report of stored results; a result that cannot be drawn is left out by name.

    Args:
        runs: the results, in any order.
        left_out: what could not be read before, to be named.
        title: the heading of the page.
        style: of the files in `figures/`; the page itself always has the screen's.
        formats: of the files in `figures/`.
        progress: called as `progress(folder, results done, results in all)`.
    """
    maker = _Maker(style, tuple(formats))
    entries: list[ReportEntry] = []
    missing = list(left_out)
    for done, run in enumerate(_in_order(runs)):
        if progress is not None:
            progress(f"drawing {run.folder}", done, len(runs))
        try:
            entries.append(maker.entry(run))
        except Exception as problem:  # whatever a damaged record breaks, the others are shown
            reason = f"cannot be drawn: {type(problem).__name__} {problem}"
            missing.append(LeftOut(run.folder, reason))
    commands = dict.fromkeys(entry.run.result.command for entry in entries)
    sections = (
        ReportSection(
            anchor=command,
            question=question_of(command),
            entries=tuple(entry for entry in entries if entry.run.result.command == command),
        )
        for command in commands
    )
    return Report(title=title, sections=tuple(sections), left_out=tuple(missing))


class _Maker:
    """Makes entries, counting figures and results so that every id is its own."""

    def __init__(self, style: str, formats: tuple[FigureFormat, ...]) -> None:
        self._style, self._formats = style, formats
        self._figures = 0
        self._results: dict[str, int] = {}

    def entry(self, run: StoredRun) -> ReportEntry:
        """Return one result, drawn."""
        result = run.result
        question = question_of(result.command)
        count = self._results.get(result.command, 0) + 1
        anchor = f"{result.command}-{count}"
        screen = _outputs(result, "screen")
        filed = screen if self._style == "screen" else _outputs(result, self._style)
        figures = self._draw(question, anchor, screen, filed)
        findings = (*_stopped(result), *question.findings(result))
        tables = {} if screen is None else screen.tables
        entry = ReportEntry(
            anchor=anchor,
            run=run,
            finding=" ".join(findings[: question.in_verdict + len(_stopped(result))])
            or checks_sentence(result.checks),
            findings=findings,
            figures=figures,
            table=None if screen is None else screen.table,
            tables={name: rows for name, rows in tables.items() if len(rows) <= MOST_ROWS},
            too_long=tuple(name for name, rows in tables.items() if len(rows) > MOST_ROWS),
            settings=_facts(result.config, {key: key.replace("_", " ") for key in result.config}),
            provenance=_provenance(run),
            reproduce=command_line(question, result.config, run.folder),
        )
        self._results[result.command] = count
        self._figures += len(figures)
        return entry

    def _draw(
        self, question: Question, anchor: str, screen: Outputs | None, filed: Outputs | None
    ) -> tuple[ReportFigure, ...]:
        shown = {} if screen is None else screen.figures
        files = {} if filed is None else filed.figures
        return tuple(
            self._figure(figure, files[name], anchor=anchor, name=name, number=number, caption=text)
            for number, (name, figure) in enumerate(shown.items(), start=self._figures + 1)
            for text in [question.captions.get(name, name)]
        )

    def _figure(
        self, shown: Figure, filed: Figure, *, anchor: str, name: str, number: int, caption: str
    ) -> ReportFigure:
        same = shown is filed
        svg = figure_bytes(shown, "svg")
        known: dict[str, bytes] = {"svg": svg} if same else {}
        stem = anchor if name == anchor.rpartition("-")[0] else f"{anchor}-{name}"
        return ReportFigure(
            anchor=f"figure-{number}",
            number=number,
            name=name,
            alt=alt_text(shown),
            caption=caption,
            width=round(shown.get_figwidth() * PIXELS),
            height=round(shown.get_figheight() * PIXELS),
            svg=svg,
            png=cache(partial(few_colors, shown)),
            files={
                f"{stem}.{ending}": known.get(ending) or figure_bytes(filed, ending)
                for ending in self._formats
            },
        )


def _stopped(result: Result) -> tuple[str, ...]:
    """Return that a result is a part of what was asked for, where the user stopped it."""
    how_far = result.environment.get("interrupted")
    return () if how_far is None else (f"Stopped early: {how_far}",)


def _in_order(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """Return the runs by question, in the order in which a report asks them."""
    known = list(QUESTIONS)
    commands = [*known, *dict.fromkeys(run.result.command for run in runs)]
    return sorted(runs, key=lambda run: commands.index(run.result.command))


def _outputs(result: Result, style: str) -> Outputs | None:
    presenter: Callable[..., Outputs] | None = PRESENTERS.get(result.command)
    return None if presenter is None else presenter(result, style=style)


def _facts(values: Mapping[str, Any], names: Mapping[str, str]) -> Facts:
    """Return name and value, as text, of what is known."""
    known = ((name, values.get(key)) for key, name in names.items())
    return tuple((name, _fact(value)) for name, value in known if value is not None)


def _fact(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(map(_fact, value))
    return json.dumps(value)


def _provenance(run: StoredRun) -> Facts:
    """Return where a result comes from; of the program that was called, its name alone."""
    known = dict(run.result.environment)
    if isinstance(argv := known.get("argv"), list) and argv:
        known["argv"] = shlex.join([PurePath(str(argv[0])).name, *map(str, argv[1:])])
    return (("folder", run.folder), *_facts(known, _PROVENANCE))
