"""One table for the terminal, a pipe and a notebook: text cells that are never cut.

A `TextTable` is a rich renderable. It fits itself to the width: as it is; with its first column
folded; or, where even that is too wide, with one line per number.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
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

    The first column may be folded where there is little room; no other cell is ever broken.
    """

    title: str
    columns: tuple[Column, ...]
    sections: tuple[tuple[Cells, ...], ...]
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[Cells, ...]:
        """All rows, without their grouping."""
        return tuple(row for section in self.sections for row in section)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the title, the widest form that fits, and the notes."""
        yield Text(self.title, style="bold")
        yield from self._body(console, options)
        for note in self.notes:
            yield Padding(Text(note), (0, 0, 0, 1))

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Return the width of the whole table; a terminal narrower than that gets another form."""
        wide = options.update(max_width=100_000)
        widest = Measurement.get(console, wide, self._table()).maximum
        return Measurement(widest, widest)

    def _body(self, console: Console, options: ConsoleOptions) -> Iterator[Table | Text]:
        wide = options.update(max_width=100_000)
        for folded in (None, *range(24, 7, -4)):
            table = self._table(folded)
            if Measurement.get(console, wide, table).maximum <= options.max_width:
                yield table
                return
        yield from self._lines()

    def _table(self, folded: int | None = None) -> Table:
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        for index, column in enumerate(self.columns):
            foldable = folded is not None and index == 0
            table.add_column(
                Text(column.heading, style="bold"),
                justify="right" if column.numeric else "left",
                vertical="top",
                no_wrap=not foldable,
                overflow="fold",
                max_width=folded if foldable else None,
            )
        for section in self.sections:
            for index, row in enumerate(section):
                last = index == len(section) - 1 and section is not self.sections[-1]
                table.add_row(*(Text(cell) for cell in row), end_section=last)
        return table

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
        return f"<table>{caption}<thead><tr>{heads}</tr></thead>{body}</table>{notes}"

    def _html_rows(self, rows: tuple[Cells, ...]) -> str:
        lines = []
        for row in rows:
            cells = zip(self.columns, row, strict=True)
            lines.append("".join(_html_cell(column, cell) for column, cell in cells))
        return "".join(f"<tr>{line}</tr>" for line in lines)


def _html_cell(column: Column, cell: str) -> str:
    side = "right" if column.numeric else "left"
    return f'<td style="text-align:{side}">{html.escape(cell)}</td>'
