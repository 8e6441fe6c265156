"""Stored results to make reports of, and a reader of the page that is made."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache
from html.parser import HTMLParser
from typing import Any

from gradflow.present.report import Report, build_report
from gradflow.present.report.page import page_html
from gradflow.records import Check, Result
from gradflow.records.report import LeftOut, StoredRun
from tests.present.decays import two_rows
from tests.present.every_figure import COMMANDS, result_of

EVIL = '<script>alert("x")</script> & "quoted" `code` *bold* | [link](javascript:x)'
_VOID = {"meta", "link", "img", "br", "hr", "input"}


def every_run() -> list[StoredRun]:
    """Return a small real result of every command that draws."""
    return [StoredRun(f"runs/{command}", result_of(command)) for command in COMMANDS]


def decay_run(folder: str = "runs/decay", **changes: Any) -> StoredRun:
    """Return a decay in closed form: two cells, three gates, both gains."""
    return StoredRun(folder, replace(two_rows(), **changes))


def evil_run() -> StoredRun:
    """Return a decay in which every text that a user may choose tries to break out."""
    result = two_rows(cells=("lstm",))
    curves = tuple(replace(curve, cell=EVIL, notes=(EVIL,)) for curve in result.curves)
    checks = (Check(EVIL, False, EVIL),)
    config, environment = {EVIL: EVIL, "cell": [EVIL]}, {"argv": [EVIL, EVIL], "platform": EVIL}
    evil = replace(
        result, curves=curves, notes=(EVIL,), checks=checks, config=config, environment=environment
    )
    return StoredRun(EVIL, evil)


@dataclass(frozen=True)
class Broken(Result):
    """A result of a known command that nothing can draw."""

    @property
    def curves(self) -> Any:
        """Fail, as a damaged record does."""
        raise KeyError("curves")

    notes: tuple[str, ...] = ()
    paths: tuple[Any, ...] = ()


Broken.command = "decay"  # type: ignore[misc]


@cache
def whole_report() -> Report:
    """Return a report of every command, of a second decay, and of a folder that is missing."""
    runs = [*every_run(), decay_run("runs/again")]
    return build_report(runs, [LeftOut("runs/gone", "there is no result.json")], formats=("svg",))


@cache
def whole_page() -> str:
    """Return its page."""
    return page_html(whole_report())


@dataclass
class Element:
    """An element of a page: tag, attributes, what is in it."""

    tag: str
    attributes: dict[str, str]
    parent: Element | None
    nodes: list[Element | str] = field(default_factory=list)

    @property
    def children(self) -> list[Element]:
        """The elements in it."""
        return [node for node in self.nodes if isinstance(node, Element)]

    @property
    def text(self) -> str:
        """All text in the element, blanks joined."""
        return re.sub(r"\s+", " ", self._raw()).strip()

    def _raw(self) -> str:
        return "".join(node if isinstance(node, str) else node._raw() for node in self.nodes)


class Page(HTMLParser):
    """All elements of a page; `unclosed` are tags that were never closed, or closed wrongly."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.unclosed: list[str] = []
        self._open: list[Element] = []
        self.feed(markup)
        self.close()
        self.unclosed += [element.tag for element in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        parent = self._open[-1] if self._open else None
        element = Element(tag, {name: value or "" for name, value in attrs}, parent)
        self.elements.append(element)
        if parent is not None:
            parent.nodes.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        """Close the last element, which must be of this tag."""
        if self._open and self._open[-1].tag == tag:
            self._open.pop()
        else:
            self.unclosed.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        """Keep text."""
        if self._open:
            self._open[-1].nodes.append(data)

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """Return the elements of a tag that have these attributes."""
        return [
            element
            for element in self.elements
            if element.tag == tag
            and all(element.attributes.get(name) == value for name, value in attributes.items())
        ]
