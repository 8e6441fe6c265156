"""Tables that are never cut."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from gradflow.present.tables import Column, TextTable

TABLE = TextTable(
    title="Numbers",
    columns=(Column("cell", numeric=False), Column("gain"), Column("log10\nnorm"), Column("rate")),
    sections=(
        (("lstm", "0", "-100.123", "+8.88e-15"), ("lstm", "0", "-30.103", "0")),
        (("folder/my_[red]cell.py:make", "1", "-1", "-0.25"),),
    ),
    notes=("A note that says why.",),
    shared=2,
)
CELLS = {cell for row in TABLE.rows for cell in row}


def shown(table: TextTable, width: int) -> str:
    """Return what a terminal of this width shows."""
    stream = io.StringIO()
    Console(file=stream, width=width, force_terminal=False, legacy_windows=False).print(table)
    return stream.getvalue()


@pytest.mark.parametrize("width", [30, 50, 80, 200])
def test_no_digit_is_lost_at_any_width(width: int):
    """Wide, grouped or one number a line: every cell is there, and no line is too long."""
    text = shown(TABLE, width)
    assert all(cell_len(line) <= width for line in text.splitlines())
    joined = text.replace("\n", "")
    assert all(cell in joined for cell in CELLS)
    assert "why." in joined


def test_a_wide_terminal_has_one_row_a_line():
    """With room enough a row is one line, under one heading."""
    lines = shown(TABLE, 200).splitlines()
    (row,) = [line for line in lines if "-100.123" in line]
    assert row.split() == ["lstm", "0", "-100.123", "+8.88e-15"]
    assert sum("norm" in line for line in lines) == 1


def test_a_narrower_terminal_says_once_what_a_section_shares():
    """The first columns move to a line above each section; the numbers stay in columns."""
    lines = shown(TABLE, 45).splitlines()
    assert "cell lstm, gain 0" in [line.strip() for line in lines]
    (row,) = [line for line in lines if "-100.123" in line]
    assert row.split() == ["-100.123", "+8.88e-15"]


def test_square_brackets_are_text():
    """A file called my_[red]cell.py keeps its name: nothing of a user's is markup."""
    assert "my_[red]cell.py" in shown(TABLE, 200)


def test_a_table_tells_how_wide_it_is():
    """Who pipes it asks for its width and gets every row and note on one line."""
    console = Console(width=10_000)
    width = console.measure(TABLE).maximum
    lines = shown(TABLE, width).splitlines()
    assert any("folder/my_[red]cell.py:make" in line and "-0.25" in line for line in lines)


def test_html_escapes_every_text():
    """A cell named <script> is shown, not run."""
    table = TextTable("<b>", (Column("<i>", numeric=False),), ((("<script>x</script>",),),), ("&",))
    page = table.to_html()
    assert "<script>" not in page
    assert "&lt;script&gt;x&lt;/script&gt;" in page
    assert "<caption>&lt;b&gt;</caption>" in page
    assert "<p>&amp;</p>" in page


def test_a_table_of_other_columns_stands_between_rows_and_notes():
    """What has columns of its own follows the rows; the notes of both stay below."""
    inner = TextTable("Widths", (Column("hidden"),), ((("149",),),), ("A note of its own.",))
    both = TextTable("Numbers", TABLE.columns, TABLE.sections, TABLE.notes, shared=2, more=(inner,))
    for width in (30, 80, 200):
        text = shown(both, width)
        places = [text.index(word) for word in ("-100.123", "Widths", "149", "own.", "why.")]
        assert places == sorted(places)
        assert all(cell_len(line) <= width for line in text.splitlines())
    page = both.to_html()
    assert page.index("Numbers") < page.index("149") < page.index("says why")
