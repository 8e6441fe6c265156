"""A sweep and a comparison as text: nothing is cut, and a reader learns why tasks failed."""

from __future__ import annotations

import csv
import io

import pytest

from gradflow.documents import csv_text
from gradflow.present.runs import (
    MOST_RATIOS,
    comparison_rows,
    comparison_table,
    listing_rows,
    listing_table,
    long_table_text,
)
from gradflow.present.tables import Column, TextTable
from gradflow.records.runs import ComparedNumber, Difference, RunsComparison, SweepListing
from gradflow.records.sweeps import StoredRow


def rows() -> tuple[StoredRow, ...]:
    """Return a done, two failed and a waiting task."""
    settings = [{"cell": "gru", "seed": seed, "gates": [0.5, 1]} for seed in range(4)]
    row = {"seed": 7, "test": {"accuracy": 0.5}, "curve": [1, 2]}
    return (
        StoredRow("k0", settings[0], "done", row=row, attempts=1, started="now", seconds=0.25),
        StoredRow("k1", settings[1], "failed", "it broke", attempts=1, seconds=0.5),
        StoredRow("k2", settings[2], "failed", "it broke", attempts=3),
        StoredRow("k3", settings[3], "waiting"),
    )


def listing(shown: tuple[StoredRow, ...] | None = None) -> SweepListing:
    """Return a listing of them."""
    return SweepListing(
        "runs/x", rows(), rows() if shown is None else shown, ("seed",), ("test.accuracy",)
    )


def test_a_listing_shows_what_varies_and_how_it_went():
    """Tasks by their number in the sweep, also where only some are shown."""
    table = listing_table(listing())
    assert table.title == "runs/x: 4 tasks (1 done, 2 failed, 1 waiting)"
    assert [column.line for column in table.columns] == [
        *("task", "seed", "status", "times begun", "seconds", "test. accuracy"),
    ]
    assert table.rows[0] == ("1", "0", "done", "1", "0.25", "0.5")
    assert table.rows[3] == ("4", "3", "waiting", "0", "-", "-")
    assert table.notes == ("2 tasks, numbers 2, 3: it broke",)
    some = listing_table(listing(rows()[1:2]))
    assert [row[0] for row in some.rows] == ["2"]
    assert some.notes == ("Task 2: it broke",)
    assert listing_table(listing(())).notes == ("There is no such task.",)


def test_a_sha256_is_its_first_digits_in_a_table():
    """The code of a cell that changed: told apart at a glance, and whole in CSV."""
    codes = ["ab" * 32, "cd" * 32]
    both = tuple(StoredRow(code[:2], {"code": code}, "waiting") for code in codes)
    changed = SweepListing("runs/x", both, both, ("code",), ())
    assert [row[1] for row in listing_table(changed).rows] == ["abababababab", "cdcdcdcdcdcd"]
    assert [row["code"] for row in listing_rows(changed)] == codes


def test_the_csv_of_a_listing_has_every_single_value():
    """A value of the row that is called like a setting keeps its own column."""
    found = list(csv.DictReader(io.StringIO(csv_text(listing_rows(listing())))))
    assert found[0]["gates"] == "[0.5, 1]"
    assert (found[0]["seed"], found[0]["row.seed"], found[0]["test.accuracy"]) == ("0", "7", "0.5")
    assert (found[2]["reason"], found[2]["attempts"], found[2]["test.accuracy"]) == (
        *("it broke", "3", ""),
    )
    assert "curve" not in found[0]


def comparison(count: int = 1, **more: object) -> RunsComparison:
    """Return a comparison of `count` numbers, of which the later ones moved more."""
    numbers = tuple(
        ComparedNumber("loss", f"task {place}", 1.0, 1.0 + place, 1.0 + place, place > 28)
        for place in range(count)
    )
    return RunsComparison(("a", "b"), numbers, 29.5, **more)  # type: ignore[arg-type]


def test_a_long_comparison_shows_what_moved_most():
    """In its order; the CSV has all of it."""
    table = comparison_table(comparison(30))
    assert [row[1] for row in table.rows] == [f"task {n}" for n in range(30 - MOST_RATIOS, 30)]
    assert [row[-1] for row in table.rows].count("past it") == 1
    assert "10 numbers that moved less, of 30, are in --format csv." in table.notes
    assert len(comparison_rows(comparison(30))) == 30


def test_a_comparison_tells_what_differs():
    """Settings and surroundings as tables of their own, and the runs' own checks."""
    table = comparison_table(
        comparison(
            settings=(Difference("paths", False, True),),
            surroundings=(Difference("git_sha", None, "abc"),),
            checks_passed=((1, 2), None),
        )
    )
    assert [(part.title, part.rows) for part in table.more] == [
        ("Settings that differ", (("paths", "false", "true"),)),
        ("Where and with what they ran", (("git_sha", "-", "abc"),)),
    ]
    assert table.notes == ("Checks passed: 1 of 2 in A.",)


@pytest.mark.parametrize("count", [0, 3])
def test_a_long_table_is_the_same_text_without_its_renderer(count: int):
    """Headings of one and two lines stand on the rule; numbers stand right, words left."""
    table = TextTable(
        title="title",
        columns=(Column("name", numeric=False), Column("per\nstep")),
        sections=((("a", "1"), ("bcdefg", "10"), ("é", "-"))[:count],),
        notes=("note",),
    )
    width = 6 if count else 4
    lines = long_table_text(table).splitlines()
    assert lines[0] == "title"
    assert lines[1].split() == ["per"]
    assert lines[2] == f"{'name':<{width}}  step"
    assert lines[3] == "─" * width + "  ────"
    assert lines[4:] == [*["a          1", "bcdefg    10", "é          -"][:count], "", "note"]
