"""One table for the terminal, a pipe and a notebook: text cells that are never cut.

A `TextTable` is a rich renderable that fits itself to the width: as it is; with what a section
shares moved to a line above the section; or, where even that is too wide, one number a line.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

Cells = tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """A column: its heading (lines split by a newline) and whether it holds numbers."""

    heading: str
    numeric: bool = True

    @property
    def line(self) -> str:
        """The heading on one line."""
        return self.heading.replace("\n", " ")


@dataclass(frozen=True)
class TextTable:
    """Rows of text under columns; `sections` are groups of rows, notes stand below.

    The first `shared` columns may be the same in all rows of a section; a narrow terminal shows
    them once, above it. `more` are tables with columns of their own, between the rows and the
    notes.
    """

    title: str
    columns: tuple[Column, ...]
    sections: tuple[tuple[Cells, ...], ...]
    notes: tuple[str, ...] = ()
    shared: int = 0
    more: tuple[TextTable, ...] = ()

    @property
    def rows(self) -> tuple[Cells, ...]:
        """All rows, without their grouping."""
        return tuple(row for section in self.sections for row in section)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the title, the widest form that fits, and the notes."""
        yield Text(self.title, style="bold")
        yield from self._body(console, options)
        for table in self.more:
            yield Text("")
            yield table
        if self.more and self.notes:
            yield Text("")
        for note in self.notes:
            yield Text(note, overflow="fold")

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Return the width of the whole table; a terminal narrower than that gets another form."""
        texts = (self.title, *self.notes)  # in a pipe each is one line
        inner = [_width(console, options, table) for table in self.more]
        widest = max([_width(console, options, self._whole()), *inner, *map(cell_len, texts)])
        return Measurement(widest, widest)

    def _body(self, console: Console, options: ConsoleOptions) -> Iterator[Table | Text]:
        whole = self._whole()
        if _width(console, options, whole) <= options.max_width:
            yield whole
            return
        compact = list(self._compact())
        tables = [part for part in compact if isinstance(part, Table)]
        if all(_width(console, options, part) <= options.max_width for part in tables):
            yield from compact
        else:
            yield from self._lines()

    def _whole(self) -> Table:
        table = _table(self.columns)
        for section in self.sections:
            for index, row in enumerate(section):
                last = index == len(section) - 1 and section is not self.sections[-1]
                table.add_row(*map(Text, row), end_section=last)
        return table

    def _compact(self) -> Iterator[Table | Text]:
        """Yield each section under a line that says what its rows share."""
        own = self.columns[self.shared :]
        widths = [
            max([*(cell_len(line) for line in column.heading.split("\n")), *map(cell_len, cells)])
            for column, *cells in zip(own, *(row[self.shared :] for row in self.rows), strict=True)
        ]
        for section in self.sections:
            same = zip(self.columns, section[0][: self.shared], strict=False)
            heading = ", ".join(f"{column.line} {cell}" for column, cell in same)
            yield Text("\n" + heading, style="bold", overflow="fold")
            table = _table(own, widths, gap=1)
            for row in section:
                table.add_row(*map(Text, row[self.shared :]))
            yield table

    def _lines(self) -> Iterator[Text]:
        """Yield each row as lines of "heading  value", for a terminal narrower than any table."""
        width = max(len(column.line) for column in self.columns)
        for row in self.rows:
            yield Text("")
            for column, cell in zip(self.columns, row, strict=True):
                yield Text(f"{column.line:<{width}}  {cell}", overflow="fold")
        yield Text("")

    def to_html(self) -> str:
        """Return the table as HTML, with every text escaped."""
        heads = "".join(f'<th scope="col">{html.escape(c.line)}</th>' for c in self.columns)
        body = "".join(f"<tbody>{self._html_rows(section)}</tbody>" for section in self.sections)
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        caption = f"<caption>{html.escape(self.title)}</caption>"
        more = "".join(table.to_html() for table in self.more)
        return f"<table>{caption}<thead><tr>{heads}</tr></thead>{body}</table>{more}{notes}"

    def _html_rows(self, rows: tuple[Cells, ...]) -> str:
        lines = []
        for row in rows:
            cells = zip(self.columns, row, strict=True)
            lines.append("".join(_html_cell(column, cell) for column, cell in cells))
        return "".join(f"<tr>{line}</tr>" for line in lines)


def _html_cell(column: Column, cell: str) -> str:
    side = "right" if column.numeric else "left"
    return f'<td style="text-align:{side}">{html.escape(cell)}</td>'


def _table(
    columns: tuple[Column, ...], widths: Sequence[int | None] | None = None, *, gap: int = 2
) -> Table:
    padding = (0, gap - 1, 0, 0)  # the box draws one more blank between columns
    table = Table(box=box.SIMPLE_HEAD, padding=padding, pad_edge=False, show_edge=False)
    for column, width in zip(columns, widths or [None] * len(columns), strict=True):
        side: Literal["left", "right"] = "right" if column.numeric else "left"
        heading = Text(column.heading, style="bold")
        table.add_column(heading, justify=side, vertical="bottom", no_wrap=True, min_width=width)
    return table


def _width(console: Console, options: ConsoleOptions, table: Table | TextTable) -> int:
    """Return the width that a table needs so that no cell is cut."""
    return Measurement.get(console, options.update(max_width=100_000), table).maximum
