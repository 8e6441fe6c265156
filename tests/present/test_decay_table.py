"""The table and the CSV rows of a decay."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace

import pytest
from rich.console import Console

from gradflow.present.decay import DecayStepRows, decay_outputs, decay_rows, decay_table
from gradflow.store import csv_text
from tests.present.decays import (
    LIVE_RATE,
    bare_curve,
    decay_of,
    gainless_curve,
    held_curve,
    two_rows,
    zero_curve,
)


def cells(result, row: int = 0) -> dict[str, str]:
    """Return a row of the table by its headings."""
    table = decay_table(result)
    return dict(zip([column.line for column in table.columns], table.rows[row], strict=True))


def test_a_row_has_the_numbers_of_its_curve():
    """f=0.9 with i=o=1/2 and U=I: 1.15 a step against a trend of 0.9, so it never halves."""
    assert cells(decay_of(held_curve(0.9, gain=1.0, rate=LIVE_RATE))) == {
        "cell": "lstm",
        "gain": "1",
        "gate": "0.9",
        "path": "full",
        "factor per step": "1.15",
        "log10 norm at T": "6.06978",  # 100 log10(1.15)
        "T log10 gate": "-4.57575",
        "half-life steps": "grows",
        "departure nats/step": "+0.245",  # ln(1.15 / 0.9)
    }


def test_a_held_gate_halves_in_the_steps_of_its_value():
    """0.5 halves in one step, 0.1 in log(2)/log(10) of one."""
    assert cells(decay_of(held_curve(0.5)))["half-life steps"] == "1"
    assert cells(decay_of(held_curve(0.1)))["half-life steps"] == "0.30103"


def test_the_gate_as_realised_is_shown_where_it_is_not_the_value_asked_for():
    """A gate that moves has its least and its greatest value; a constant one is one number."""
    assert "gate as realised" not in cells(decay_of(held_curve(0.5)))
    moving = replace(held_curve(0.5), gate_min=0.4321, gate_max=0.625)
    assert cells(decay_of(moving))["gate as realised"] == "0.4321..0.625"
    assert cells(decay_of(moving))["gate"] == "0.5"


def test_an_exact_zero_is_a_word_and_has_its_note():
    """The number is zero, there is no rate, and below the table stands why."""
    result = decay_of(zero_curve(0.5), notes=["exactly 0: no weight carries h_0 any further."])
    row = cells(result)
    assert row["log10 norm at T"] == "zero"
    assert row["half-life steps"] == row["factor per step"] == "-"
    assert decay_table(result).notes == ("exactly 0: no weight carries h_0 any further.",)


def test_a_cell_without_a_gate_has_no_trend():
    """An RNN has its gain, a user's bare cell not even that; what is missing is a dash."""
    rnn = cells(decay_of(gainless_curve(1.1)))
    assert (rnn["gain"], rnn["gate"], rnn["T log10 gate"]) == ("1.1", "-", "-")
    bare = cells(decay_of(bare_curve("mine.py:make")))
    assert (bare["cell"], bare["gain"], bare["departure nats/step"]) == ("mine.py:make", "-", "-")


def test_one_step_has_a_norm_and_no_rate():
    """At T=1 there is a number and nothing to fit."""
    row = cells(decay_of(held_curve(0.9, steps=1)))
    assert row["log10 norm at T"] == "-0.0457575"
    assert row["factor per step"] == row["departure nats/step"] == "-"


def test_both_paths_of_a_gate_stand_together():
    """full, direct, full, direct: gate by gate, cell by cell."""
    table = decay_table(two_rows())
    assert [len(section) for section in table.sections] == [6, 6, 6, 6]
    assert [row[3] for row in table.sections[1]] == ["full", "direct"] * 3
    assert [row[2] for row in table.sections[1]] == ["0.1", "0.1", "0.5", "0.5", "0.9", "0.9"]


def test_the_default_table_fits_a_terminal_of_80_columns_on_one_line_a_row():
    """Twelve curves and their direct paths, whole."""
    stream = io.StringIO()
    Console(file=stream, width=80, legacy_windows=False).print(decay_table(two_rows()))
    rows = [line.split() for line in stream.getvalue().splitlines() if "full" in line.split()]
    assert len(rows) == 12
    assert {len(row) for row in rows} == {9}


def test_csv_rows_keep_every_digit():
    """What is read back is the number that was measured, and an exact zero is -inf."""
    result = decay_of(held_curve(0.9, rate=LIVE_RATE), zero_curve(0.5))
    first, second = csv.DictReader(io.StringIO(csv_text(decay_rows(result))))
    assert float(first["rate"]) == LIVE_RATE
    assert float(first["log10_norm"]) == result.curves[0].log10_norm[-1]
    assert float(second["log10_norm"]) == -math.inf
    assert (second["zero_reason"], second["rate"]) == ("exact", "")


def test_a_step_row_is_a_point_of_a_curve():
    """One row per curve and step, by index as by iteration."""
    result = two_rows(steps=7)
    rows = DecayStepRows(result)
    assert len(rows) == 7 * len(result.curves)
    assert [rows[index] for index in range(len(rows))] == list(rows)
    assert rows[-1] == rows[len(rows) - 1]
    assert rows[7]["step"] == 1
    assert rows[6]["log10_norm"] == result.curves[0].log10_norm[6]
    assert rows[2:4] == [rows[2], rows[3]]
    with pytest.raises(IndexError):
        rows[len(rows)]


def test_step_rows_are_made_when_they_are_read():
    """A hundred thousand steps of many curves take no memory until they are written."""
    rows = DecayStepRows(two_rows(steps=100_000))
    assert len(rows) == 2_400_000
    assert rows[2_399_999]["step"] == 100_000


def test_outputs_are_what_the_store_takes():
    """Two CSV tables, and a figure as PNG and SVG bytes with its alt text."""
    outputs = decay_outputs(two_rows(steps=5))
    assert list(outputs.tables) == ["decay", "curves"]
    assert outputs.rows is outputs.tables["decay"]
    files = outputs.figure_files()
    assert list(files) == ["decay.png", "decay.svg"]
    assert files["decay.png"].startswith(b"\x89PNG")
    assert b"<svg" in files["decay.svg"]
    assert outputs.alts["decay"].startswith("Line chart of ||dc_T/dc_0||_2")


def test_a_cell_of_ones_own_is_named_without_its_folders_unless_two_would_be_alike():
    """A path would push the numbers beyond the terminal's edge."""
    alone = decay_of(bare_curve("some/folder/unit.py:make"))
    assert cells(alone)["cell"] == "unit.py:make"
    alike = decay_of(bare_curve("a/unit.py:make"), bare_curve("b/unit.py:make"))
    names = [section[0][0] for section in decay_table(alike).sections]
    assert names == ["a/unit.py:make", "b/unit.py:make"]


def test_the_heading_says_of_a_bare_cell_only_what_is_so():
    """It chose its own width, and nothing of it was held."""
    title = decay_table(decay_of(bare_curve("mine.py:make"))).title
    assert title.endswith("(zero input, random start, float64)")
    both = decay_table(decay_of(bare_curve("mine.py:make"), held_curve(0.5))).title
    assert "hidden 64" in both
    assert "input gate coupled" in both
    assert "reset gate" not in both


def test_a_departure_that_is_rounding_reads_as_zero():
    """8.9e-15 nats a step is no departure; the heading says below what, and JSON keeps it."""
    curve = replace(held_curve(0.5), rate=math.log(0.5) + 8.88e-15)
    row = cells(decay_of(curve))
    assert row["departure nats/step (0: <1e-12)"] == "0"
    assert decay_of(curve).to_json()["results"]["curves"][0]["departure"] == pytest.approx(
        8.88e-15, rel=0.05
    )
    small = replace(held_curve(0.5), rate=math.log(0.5) + 1e-9)
    assert cells(decay_of(small))["departure nats/step"] == "+1e-09"


def test_in_float32_more_is_rounding():
    """Its last digit is 1.2e-7."""
    curve = replace(held_curve(0.5), rate=math.log(0.5) + 4e-8)
    single = replace(decay_of(curve), config={"dtype": "float32"})
    assert cells(single)["departure nats/step (0: <1e-06)"] == "0"
