"""A report as one HTML page that needs nothing else: no script, no network, no file beside it.

Every text goes through jinja2's escaping, so a model that is named like a tag stays a name. The
page carries a content security policy of its own: a browser loads nothing for it.
"""

from __future__ import annotations

import functools
import html
import re
from importlib import resources

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from gradflow import __version__
from gradflow.present.report.embed import data_uris
from gradflow.present.report.model import Report

LARGEST = 1_950_000  # bytes: a page below two megabytes can be mailed anywhere
_POWER = re.compile(r"\b([a-z])\^T\b")
_TOGETHER = re.compile(r"([\d.]+e[-+]\d+|-&gt;)")
MOST_ROWS = 120  # of a table on the page; its CSV has all


def page_html(report: Report, *, largest: int = LARGEST) -> str:
    """Return the whole page, of at most so many bytes where its texts leave that much room."""
    bare = _render(report, {})
    figures = [figure for entry in report.entries for figure in entry.figures]
    return _render(report, data_uris(figures, largest - len(bare.encode("utf-8"))))


@functools.cache
def environment() -> Environment:
    """Return jinja2 with the report's templates, which escape everything that is a text."""
    made = Environment(
        loader=FunctionLoader(template_text),
        autoescape=lambda name: name is not None and name.endswith(".html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"code": with_code, "prose": prose}
    return made


def template_text(name: str) -> str:
    """Return the text of a template or style sheet of this package."""
    folder = resources.files("gradflow.present.report") / "templates"
    return (folder / name).read_text(encoding="utf-8")


def with_code(text: str) -> Markup:
    """Return text as HTML, what stands between backticks as code.

    >>> with_code("see `a < b`")
    Markup('see <code>a &lt; b</code>')
    """
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text)))


def prose(text: str) -> Markup:
    """Return text as HTML: f^T with its power above, and no line ends in 1e-16 or in ->.

    >>> prose("f^T < 1e-16")
    Markup('<i>f</i><sup>T</sup> &lt; <span class="together">1e-16</span>')
    """
    safe = _POWER.sub(r"<i>\1</i><sup>T</sup>", html.escape(text))
    return Markup(_TOGETHER.sub(r'<span class="together">\1</span>', safe))


def _render(report: Report, images: dict[str, str | None]) -> str:
    template = environment().get_template("page.html")
    return template.render(
        report=report,
        images={anchor: uri and Markup(uri) for anchor, uri in images.items()},
        style=Markup(template_text("page.css")),
        version=__version__,
        most_rows=MOST_ROWS,
        labels=_labels(report),
    )


def _labels(report: Report) -> dict[str, str]:
    """Return what each result is called in the verdict: its command, numbered if not alone."""
    return {
        entry.anchor: entry.anchor if len(section.entries) > 1 else section.question.command
        for section in report.sections
        for entry in section.entries
    }
