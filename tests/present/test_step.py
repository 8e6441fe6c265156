"""The table, the CSV rows and the drawing of steps worked by hand."""

from __future__ import annotations

import csv
import io

import pytest
from matplotlib.patches import Rectangle
from rich.console import Console

from gradflow.documents import csv_text
from gradflow.experiments.step import work_gru, work_lstm
from gradflow.present.step import step_outputs, step_rows, step_table
from gradflow.present.step_figure import MOST_STEPS, kept_and_written, step_figure
from gradflow.present.theme import alt_text
from gradflow.records import StepResult
from tests.present.drawn import texts_on_texts, texts_outside, words

BOOK = work_lstm(2, 0.8, input_gate=0.25, candidate=-0.4, output_gate=0.5)
CASES = {
    "one": BOOK,
    "three": work_lstm(1, [0.9, 0.8, 0.5]),
    "gru": work_gru(2, 0.75, candidate=-0.4),
    "write": work_gru(-2, [0.75, 0.2], candidate=-0.4, convention="write"),
    "tiny": work_lstm(-1.2345e-5, [0.12345, 0.98765], input_gate=1.2345e-4, candidate=-0.12345),
    "zero": work_lstm(0, 0.5),
    "long": work_gru(1, [0.9] * 30),
    "huge": work_lstm(1e300, 0.9, candidate=1),
}
each_case = pytest.mark.parametrize("result", CASES.values(), ids=CASES.keys())


def shown(result: StepResult, width: int) -> str:
    """Return what a terminal of this width shows."""
    stream = io.StringIO()
    Console(file=stream, width=width, legacy_windows=False).print(step_table(result))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (BOOK, "LSTM after one step: c=1.5, h=0.45257; direct coefficient 0.8"),
        (CASES["gru"], "GRU after one step: h=1.4; direct coefficient 0.75"),
        (CASES["three"], "LSTM after 3 steps: c=0.36, h=0.17261; direct coefficient 0.36"),
    ],
)
def test_the_first_line_is_the_answer(result: StepResult, answer: str):
    """0.8 * 2 + 0.25 * (-0.4) = 1.5; 0.75 * 2 + 0.25 * (-0.4) = 1.4; 0.9 * 0.8 * 0.5 = 0.36."""
    assert shown(result, 80).splitlines()[0] == answer


@pytest.mark.parametrize("width", [80, 120])
@each_case
def test_an_equation_stands_above_its_numbers(result: StepResult, width: int):
    """Symbols, below them the numbers, below these the value; no line is too long."""
    lines = [" ".join(line.split()) for line in shown(result, width).splitlines()]
    assert max(len(line) for line in shown(result, width).splitlines()) <= width
    equation = result.steps[0].equations[0]
    symbols = f"{equation.name} = {equation.symbols}"
    (place,) = [index for index, line in enumerate(lines) if line.endswith(symbols)]
    assert lines[place + 1 : place + 3] == [f"= {equation.numbers}", f"= {equation.value:.6g}"]


def test_what_the_direct_derivative_leaves_out_has_its_own_table():
    """Three paths in an LSTM, each with its value, and below it the words on what they add to."""
    (left_out,) = step_table(BOOK).more
    assert [row[1] for row in left_out.rows if row[1]] == [
        "through the forget gate",
        "through the input gate",
        "through the candidate",
    ]
    assert [row[2] for row in left_out.rows[2::3]] == ["= 0.32", "= -0.075", "= 0.21"]
    assert step_table(BOOK).notes == BOOK.explanations


def test_the_other_convention_is_told_with_its_number():
    """z = 0.75 where z keeps is 0.25 where 1 - z keeps."""
    assert "z' = 1 - z = 0.25 gives the same step" in " ".join(shown(CASES["gru"], 80).split())


def test_a_long_product_names_its_ends():
    """Of thirty keep gates the first two and the last are written."""
    (symbols, numbers, _) = (row[2] for row in step_table(CASES["long"]).sections[-1])
    assert symbols == "= z_1 * z_2 * ... * z_30"
    assert numbers == "= 0.9 * 0.9 * ... * 0.9"


def test_csv_has_a_row_for_each_equation_with_every_digit():
    """Two of the state, three left out, one direct; text survives the commas."""
    rows = list(csv.DictReader(io.StringIO(csv_text(step_rows(BOOK)))))
    assert [row["kind"] for row in rows] == ["state"] * 2 + ["left out"] * 3 + ["direct"]
    assert float(rows[1]["value"]) == BOOK.steps[0].after["h"]
    assert rows[-1]["step"] == ""


@each_case
@pytest.mark.parametrize("style", ["screen", "paper"])
def test_no_word_of_the_drawing_lies_on_another(result: StepResult, style: str):
    """Whatever the numbers, every label has its own place inside the figure."""
    figure = step_figure(result, style=style)
    assert texts_on_texts(figure) == []
    assert texts_outside(figure) == []


def test_the_drawing_says_what_is_kept_written_and_shown():
    """The book's step: 1.6 is kept, -0.1 is written, 0.453 is shown."""
    text = words(step_figure(BOOK))
    for part in ("c_0 = 2", "kept 1.6", "written -0.1", "c_1 = 1.5", "h_1 = 0.453", "f = 0.8"):
        assert part in text
    assert kept_and_written(BOOK, BOOK.steps[0]) == (1.6, -0.1)


def test_a_gauge_is_filled_as_far_as_its_gate_is_open():
    """f = 0.8 fills four fifths of the tube; a candidate of -0.4 hangs from its middle."""
    (ax,) = step_figure(BOOK).axes
    tubes = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    whole = max(tube.get_height() for tube in tubes)
    filled = [tube.get_height() / whole for tube in tubes[1::3]]
    assert filled == pytest.approx([0.8, 0.25, -0.2, 0.5])


def test_where_z_writes_the_gauge_says_so():
    """The keep gauge of the other convention is 1 - z."""
    text = words(step_figure(CASES["write"]))
    assert "keeps\n1 - z = 0.25" in text
    assert "writes\nz = 0.75" in text


def test_only_the_first_steps_are_drawn():
    """A figure of thirty cells could not be read; the caption says where the others are."""
    figure = step_figure(CASES["long"])
    assert f"Steps after {MOST_STEPS} are in the table." in words(figure).replace("\n", " ")
    assert f"step {MOST_STEPS + 1}" not in words(figure)


def test_the_alt_text_tells_the_numbers():
    """Who cannot see the drawing is told what flows."""
    assert alt_text(step_figure(BOOK)) == (
        "LSTM cell as a conveyor belt. Step 1: of 2 the belt keeps 1.6 (gate 0.8); "
        "-0.1 is written; c=1.5, h=0.452574."
    )


def test_the_drawing_is_made_where_it_was_asked_for():
    """The command draws with --figure; a result of the library, which has no settings, always."""
    assert list(step_outputs(BOOK).figures) == ["step"]
    plain = work_gru(1, 0.5)
    unasked = type(plain)(plain.cell, plain.steps, plain.direct, config={"figure": False})
    assert step_outputs(unasked).figures == {}
