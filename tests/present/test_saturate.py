"""The saturation map and table: every tile by its sign and colour, every trial in the CSV."""

from __future__ import annotations

import csv
import io

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from gradflow.documents import csv_text
from gradflow.present.notebook import result_html
from gradflow.present.saturate import (
    saturate_figure,
    saturate_outputs,
    saturate_rows,
    saturate_table,
)
from gradflow.present.saturate_figure import FAULT, OVERFLOW
from gradflow.present.saturate_words import magnitude_title, percent, tile_of
from gradflow.present.theme import alt_text, figure_bytes
from gradflow.records import SaturateResult
from tests.present.drawn import texts_on_texts, texts_outside, words
from tests.present.saturations import (
    faulty,
    missing,
    mixed,
    overflowing,
    saturation_of,
    trial,
)

each_style = pytest.mark.parametrize("style", ["screen", "paper"])


def tiles(ax: Axes) -> dict[tuple[int, int], str]:
    """Return (column, row) of every tile, with the label of its patch."""
    found = {}
    for patch in ax.patches:
        assert isinstance(patch, Rectangle)
        x, y = patch.get_center()
        found[round(float(x)), round(float(y))] = str(patch.get_label())
    return found


def lightness(color: str) -> float:
    """Return how light a colour is in a grey print, from 0 to 1."""
    red, green, blue = to_rgb(color)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def test_a_panel_is_a_dtype_a_row_is_a_cell_and_a_column_is_a_magnitude():
    """Each tile has the gravest verdict of its trials, and how many have it."""
    figure = saturate_figure(mixed())
    half, double = figure.axes
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["float16", "float64"]
    columns = [label.get_text() for label in half.get_xticklabels()]
    assert columns == ["given", "$10^{2}$", "$10^{8}$", "max"]
    assert tiles(half) == {
        (0, 1): "ok",
        (1, 0): "ok 100%", (2, 0): "n/a", (3, 0): "overflow 1/2",
        (1, 1): "ok", (2, 1): "n/a", (3, 1): "fault 1/2",
    }  # fmt: skip
    assert tiles(double)[2, 0] == "ok 100%"


def test_verdicts_differ_in_sign_and_in_lightness():
    """Grey prints and colour-blind readers: a fault is dark, an overflow is hatched and light."""
    figure = saturate_figure(mixed())
    looks = {str(p.get_label()).split()[0]: p for p in figure.axes[0].patches}
    assert lightness(FAULT) < 0.3 < 0.7 < lightness(OVERFLOW)
    assert looks["overflow"].get_hatch()
    assert not looks["fault"].get_hatch()
    shown = words(figure)
    for sign in ("\N{MULTIPLICATION SIGN} 1/2", "\N{INFINITY} 1/2", "n/a", "100%"):
        assert sign in shown


def test_the_legend_explains_what_occurs_and_nothing_else():
    """Without a fault there is no word of faults."""
    assert "fault" in words(saturate_figure(mixed()))
    calm = words(saturate_figure(saturation_of(trial())))
    assert "saturated, not broken" in calm
    for absent in ("fault: ", "overflow: ", "n/a"):
        assert absent not in calm


@each_style
@pytest.mark.parametrize("many", [False, True])
def test_no_text_is_cut_or_lies_on_another(style: str, many: bool):
    """Every column that there can be, long names, two digits in a count: all readable."""
    result = everything() if many else mixed()
    figure = saturate_figure(result, style=style)
    assert texts_outside(figure) == []
    assert texts_on_texts(figure) == []


def everything() -> SaturateResult:
    """Return a result with every column that there can be, and counts of two digits."""
    rows = []
    cells = [
        ("lstm", "torch"),
        ("gru-before", "gradflow"),
        ("a/long/path/to_a_cell.py:make", "user"),
    ]
    for cell, by in cells:
        for dtype in ("float16", "bfloat16", "float32", "float64"):
            for magnitude in (None, "1e2", "1e4", "1e8", "max", "beyond"):
                row = trial(cell, by=by, dtype=dtype, magnitude=magnitude)
                rows += [faulty(row)] * 12 if by == "user" else [row, overflowing(row)]
    return saturation_of(*rows)


def test_the_caption_and_the_alt_text_say_the_outcome():
    """How many trials, how many faults, the first of them; each cell in the alt text."""
    figure = saturate_figure(mixed())
    shown = words(figure).replace("\n", " ")
    assert "16 trials: 2 faults of a cell, 2 honest overflows." in shown
    assert "First fault: cell.py:make_cell" in shown
    alt = alt_text(figure)
    assert "LSTM (gradflow): float16 max overflow 1/2" in alt
    assert "cell.py:make_cell: float16 max fault 1/2" in alt


def test_the_same_result_is_the_same_file():
    """No date, no random id: byte for byte."""
    one, other = (figure_bytes(saturate_figure(mixed()), "svg") for _ in range(2))
    assert one == other


def test_the_table_has_a_section_per_cell_and_a_column_per_magnitude():
    """The cells of the table are the tiles in words; notes and findings stand below."""
    table = saturate_table(mixed())
    assert [column.heading for column in table.columns] == [
        "cell", "by", "dtype", "as given", "1e2", "1e8", "max",
    ]  # fmt: skip
    assert table.rows[0] == ("lstm", "gradflow", "float16", "-", "ok 100%", "n/a", "overflow 1/2")
    assert len(table.sections) == 2
    notes = "\n".join(table.notes)
    assert "fault: cell.py:make_cell (user), float16, +max in forget gate" in notes
    assert "(2 trials alike)" in notes
    assert "A note of the run." in notes


def test_kinds_of_failure_beyond_eight_are_counted_and_not_listed():
    """The table stays readable; what is left out is said."""
    rows = [faulty(trial(f"cell{number}.py:make", by="user")) for number in range(11)]
    notes = saturate_table(saturation_of(*rows)).notes
    assert sum(note.startswith("fault: ") for note in notes) == 8
    assert any("3 more kinds of failure" in note for note in notes)


def test_the_csv_has_a_row_per_trial_with_every_column():
    """What is not finite comes as first_*; what is not there is empty."""
    result = mixed()
    rows = list(csv.DictReader(io.StringIO(csv_text(saturate_rows(result)))))
    assert len(rows) == len(result.rows)
    (fault, *_) = [row for row in rows if row["verdict"] == "fault"]
    assert fault["first_gate"] == "input"
    assert fault["first_operation"] == "exp"
    assert float(fault["first_true_log10"]) == -44.3
    (absent, *_) = [row for row in rows if row["verdict"] == "not applicable"]
    assert absent["value"] == absent["outputs_finite"] == absent["first_gate"] == ""
    assert absent["reason"] == "float16 cannot hold 1e8"


def test_outputs_are_named_after_the_question():
    """One table, one CSV and one figure, all called saturate; a notebook shows them."""
    outputs = saturate_outputs(mixed())
    assert list(outputs.tables) == list(outputs.figures) == ["saturate"]
    assert set(outputs.figure_files()) == {"saturate.png", "saturate.svg"}
    shown = result_html(mixed())
    assert "overflow 1/2" in shown
    assert "<img" in shown


def test_a_dtype_that_does_not_run_is_na_at_every_magnitude():
    """One row stands for all trials of the dtype."""
    whole = missing(trial(dtype="float16", magnitude=None), reason="it does not run")
    whole = type(whole)(**{**whole.__dict__, "place": "any", "gate": None, "path": "any"})
    result = saturation_of(whole, trial(), trial(magnitude="max"))
    for magnitude in ("1e2", "max"):
        tile = tile_of(result, ("lstm", "gradflow"), "float16", magnitude)
        assert tile is not None
        assert tile.text == "n/a"


def test_an_empty_result_still_draws():
    """No trial, no tile, and no error."""
    outputs = saturate_outputs(saturation_of())
    assert outputs.rows == []
    assert "0 trials" in words(outputs.figures["saturate"])


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0%"), (1e-4, "<1%"), (0.5, "50%"), (0.9999, ">99%"), (1.0, "100%")]
)
def test_a_share_is_never_rounded_to_none_or_all(share: float, text: str):
    """0% and 100% mean exactly that."""
    assert percent(share) == text


def test_magnitudes_read_as_powers_where_they_are():
    """10^2, but 2.5e4 as it is."""
    assert magnitude_title("1e2") == "$10^{2}$"
    assert magnitude_title("2.5e4") == "2.5e4"
