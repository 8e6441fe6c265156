"""A report as Markdown, for a repository or a wiki: figures are files beside it."""

from __future__ import annotations

import functools
import re

from jinja2 import Environment, FunctionLoader, StrictUndefined

from gradflow import __version__
from gradflow.present.report.model import Report, ReportFigure
from gradflow.present.report.page import template_text

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$!])")
_DRAWN = (".svg", ".png")  # what a reader of Markdown shows, the sharpest first


def page_markdown(report: Report) -> str:
    """Return the whole report as GitHub's Markdown."""
    text = _environment().get_template("report.md").render(report=report, version=__version__)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def plain(text: str) -> str:
    r"""Return text of which nothing is read as Markdown or as HTML, on one line.

    >>> plain("<script> a_b | c")
    '\\<script\\> a\\_b \\| c'
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def with_code(text: str) -> str:
    """Return our own words, of which what stands between backticks is code."""
    parts = text.split("`")
    return "".join(f"`{part}`" if index % 2 else plain(part) for index, part in enumerate(parts))


def code(text: str) -> str:
    """Return text as a code span, fenced by more backticks than it has in a row.

    >>> code("a`b")
    '``a`b``'
    """
    line = " ".join(text.split())
    longest = max(map(len, re.findall(r"`+", line)), default=0)
    fence = "`" * (longest + 1)
    inner = f" {line} " if line.startswith("`") or line.endswith("`") else line
    return f"{fence}{inner}{fence}"


def figure_path(figure: ReportFigure) -> str | None:
    """Return the file that Markdown can show, None where there is none."""
    names = sorted(figure.files)
    return next((name for ending in _DRAWN for name in names if name.endswith(ending)), None)


@functools.cache
def _environment() -> Environment:
    made = Environment(
        loader=FunctionLoader(template_text),
        autoescape=False,  # Markdown: `plain` and `code` escape each text
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"plain": plain, "words": with_code, "code": code, "path": figure_path}
    return made
