"""The table, the rows and the figure of paths: the verdict on f^T, in words and numbers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from gradflow.errors import UnknownNameError
from gradflow.present import paths_words as words_of
from gradflow.present import plot
from gradflow.present.blocks_figure import blocks_figure, with_blocks
from gradflow.present.decay import decay_outputs
from gradflow.present.palette import gate_color
from gradflow.present.paths import paths_figure, paths_rows, paths_table
from gradflow.present.theme import alt_text
from gradflow.records.paths import CellPaths, PathLine
from tests.present.decays import decay_of, held_curve
from tests.present.drawn import line, marks, panels, texts_on_texts, texts_outside, words

STEPS = np.array([1, 10, 20, 40, 60, 80, 100])
GATES = ("input", "forget", "output", "candidate")


def falling(path: str, rate: float, *, start: float = 0.0) -> PathLine:
    """Return the line e^(start + rate T)."""
    return PathLine(path, (start + rate * STEPS) / math.log(10), rate)


def zero(path: str, reason: str = "exact") -> PathLine:
    """Return a line that is zero from the first step."""
    return PathLine(path, np.full(len(STEPS), -np.inf), None, 1, reason)


def held_paths(
    value: float = 0.9, *, cell: str = "lstm", departure: float = 0.0, start: float = 0.0
) -> CellPaths:
    """Return the paths of a held cell whose candidate carries the departure."""
    direct = math.log(value)
    full = falling("full", direct + departure, start=start)
    rest = zero("rest") if departure == start == 0 else replace(full, path="rest")
    others = [falling(f"without {gate}", direct + departure, start=start) for gate in GATES[:3]]
    return CellPaths(
        cell=cell,
        gate_name={"lstm": "forget", "gru": "update"}.get(cell, "keep_it"),
        gate_value=value,
        candidate_gain=0.0 if departure == 0 else 1.0,
        state="c" if cell == "lstm" else "h",
        norm="spectral",
        steps=STEPS,
        lines=(
            full,
            falling("direct", direct),
            rest,
            *others,
            falling("without candidate", direct),
            falling("block h,c", direct + departure),
        ),
    )


BARE = replace(
    held_paths(), cell="mine.py:Bare", gate_name=None, gate_value=None, candidate_gain=None,
    lines=(falling("full", -0.3),), notes=("it cannot be cut.",),
)  # fmt: skip
CASES = {
    "right": [held_paths()],
    "off": [held_paths(departure=0.2)],
    "mixed": [held_paths(v, departure=d * v) for d in (0.0, 0.5) for v in (0.1, 0.5, 0.9)],
    "many": [held_paths(v / 20, departure=0.1) for v in range(1, 20)],
    "bare": [BARE],
    "own gate": [held_paths(cell="path/to/cells.py:make_my_cell", departure=-0.1)],
    "none": [],
}
each_case = pytest.mark.parametrize("paths", CASES.values(), ids=CASES.keys())


# the words


def test_the_verdict_is_the_departure_in_nats_per_step() -> None:
    """Right, right in rate alone, wrong, or nothing to compare with."""
    assert words_of.verdict(held_paths()) == "yes"
    assert words_of.verdict(held_paths(start=1.5)) == "in rate"
    assert words_of.verdict(held_paths(departure=0.2)) == "no"
    assert words_of.verdict(BARE) == "-"
    off = words_of.sentence(held_paths(departure=math.log(2)))
    assert off == (
        "LSTM, f=0.9, candidate gain 1: f^T is off by +0.693 nats per step: the gradient has 2 "
        "times what it says, after every step; with the candidate constant the rate is -0.693 "
        "apart."
    )
    assert "4.48 times lower than the truth" in str(words_of.sentence(held_paths(start=1.5)))
    assert words_of.sentence(BARE) is None


def test_what_carries_the_gradient_is_named() -> None:
    """The gate without which the rate changes most; none where no gate matters."""
    assert words_of.carrier(held_paths(departure=0.2)) == ("candidate", pytest.approx(0.2))
    assert words_of.carrier(held_paths()) is None
    assert words_of.carrier(BARE) is None


def test_the_answer_counts_and_names_the_worst() -> None:
    """One line for all cells: for how many the product of gates is right, and the furthest off."""
    answer = words_of.answer(CASES["mixed"])
    assert answer == (
        "Is f^T the right model here? For 3 of 6; it is furthest off for "
        "LSTM, f=0.9, candidate gain 1: +0.45 nats per step."
    )
    assert "straight through the keep gate" in words_of.answer(CASES["right"])
    assert "no direct path" in words_of.answer(CASES["bare"])
    both = [held_paths(), held_paths(cell="gru")]
    assert words_of.answer(both).startswith("Is f^T/z^T the right model here? For 2 of 2")


# the table


def test_a_row_per_cell_has_the_verdict_and_the_norms() -> None:
    """Departure, the three norms at the last step, and what carries the difference."""
    table = paths_table([held_paths(), held_paths(departure=0.2), BARE])
    assert table.rows == (
        ("lstm", "0", "0.9", "f^T", "yes", "0", "-4.57575", "-4.57575", "zero", "-"),
        (
            *("lstm", "1", "0.9", "f^T", "no", "+0.2", "4.11014", "-4.57575", "4.11014"),
            "candidate (+0.2)",
        ),
        ("mine.py:Bare", "-", "-", "-", "-", "-", "-13.0288", "-", "-", "-"),
    )
    assert table.notes == ("mine.py:Bare: it cannot be cut.",)


def test_rows_have_every_path_with_its_own_departure() -> None:
    """A CSV row per cell and path: its rate, its departure from the direct path, why it is zero."""
    rows = paths_rows([held_paths(departure=0.2)])
    assert [row["path"] for row in rows][:3] == ["full", "direct", "rest"]
    by_path = {row["path"]: row for row in rows}
    assert by_path["full"]["departure"] == pytest.approx(0.2)
    assert by_path["without candidate"]["departure"] == 0.0
    assert paths_rows([held_paths()])[2]["zero_reason"] == "exact"
    assert paths_rows([BARE])[0]["departure"] is None


# the figure


def test_the_lines_are_the_numbers_of_the_record() -> None:
    """Full, direct and rest are drawn as measured, and the ablation that leaves the full path."""
    paths = held_paths(departure=0.2)
    (ax,) = panels(paths_figure([paths])).values()
    for name in ("full", "direct", "rest", "without candidate"):
        expected = paths.line(name)
        assert expected is not None
        np.testing.assert_array_equal(line(ax, name).get_ydata(), expected.log10_norm)
    drawn = {str(item.get_label()) for item in ax.lines}
    assert "without input" not in drawn  # it lies on the full path
    assert "f^T is off by +0.2 nats/step" in words(ax.get_figure())


def test_a_zero_rest_is_named_at_the_floor() -> None:
    """What no log axis can show has its marks and its reason."""
    (ax,) = panels(paths_figure(CASES["right"])).values()
    assert len(marks(ax, "v")) == 1
    assert "rest: exactly zero" in words(ax.get_figure())
    late = replace(held_paths(), lines=(*held_paths().lines[:2], zero("rest", "underflow")))
    assert "rest: underflows" in words(paths_figure([late]))


def test_panels_are_named_and_not_too_many() -> None:
    """A panel per cell; beyond twelve the caption says how many the table has more."""
    assert next(iter(panels(paths_figure(CASES["mixed"])))) == "LSTM, f=0.1, gain 0"
    many = paths_figure(CASES["many"])
    assert len(panels(many)) == 12
    assert "The table has 7 more." in words(many)


@each_case
@pytest.mark.parametrize("style", ["screen", "paper"])
def test_no_text_is_cut_or_covered(paths: list[CellPaths], style: str) -> None:
    """Every text lies within the figure and on no other."""
    figure = paths_figure(paths, style=style)
    assert texts_outside(figure) == []
    assert texts_on_texts(figure) == []


@each_case
def test_the_alt_text_has_every_verdict(paths: list[CellPaths]) -> None:
    """Who cannot see the figure is told the answer and each cell's number."""
    alt = alt_text(paths_figure(paths))
    assert words_of.answer(paths) in alt
    assert all(sentence in alt for item in paths if (sentence := words_of.sentence(item)))


def test_a_decay_shows_its_paths_beside_its_curves() -> None:
    """With paths: a second table, a CSV and a figure; without: none of them."""
    plain = decay_of(held_curve(0.9))
    with_paths = decay_outputs(replace(plain, paths=(held_paths(),)))
    assert list(with_paths.tables) == ["decay", "curves", "paths"]
    assert list(with_paths.figures) == ["decay", "paths"]
    assert len(with_paths.table.more) == 1
    assert list(decay_outputs(plain).figures) == ["decay"]
    assert decay_outputs(plain).table.more == ()


def test_paths_are_drawn_where_they_were_measured() -> None:
    """`plot.paths(result)` is the figure; without paths it says how to get them."""
    plain = decay_of(held_curve(0.9))
    figure = plot.paths(replace(plain, paths=(held_paths(),)))
    assert "f^T is right" in words(figure)
    with pytest.raises(UnknownNameError, match=r"DecaySettings\(paths=True\)"):
        plot.paths(plain)


# the blocks


def test_every_block_is_a_line_with_its_own_mark_beside_the_direct_path():
    """Four blocks of an LSTM, the direct path dashed; a GRU has one part and no such figure."""
    rates = {"h,h": -0.4, "h,c": -0.3, "c,h": -0.2, "c,c": -0.1}
    blocks = [falling(f"block {name}", rate) for name, rate in rates.items()]
    off = held_paths(departure=0.2)
    kept = [one for one in off.lines if not one.path.startswith("block")]
    paths = replace(off, lines=(*kept, *blocks, falling("block joint", -0.1)))
    assert with_blocks([paths, held_paths(cell="gru")]) == [paths]
    figure = blocks_figure([paths])
    (ax,) = panels(figure).values()
    drawn = [item for item in ax.lines if str(item.get_label()).startswith("$")]
    assert len(drawn) == len({item.get_marker() for item in drawn}) == 4
    assert len({item.get_linestyle() for item in drawn}) == 4
    name = r"$\partial c_T\,/\,\partial h_0$"
    assert line(ax, name).get_ydata()[-1] == pytest.approx(-20 / math.log(10))
    assert line(ax, "direct").get_linestyle() == "--"
    assert "c,h -8.686" in alt_text(figure)
    assert texts_on_texts(figure) == []
    outputs = decay_outputs(replace(decay_of(held_curve(0.9)), paths=(paths,)))
    assert list(outputs.figures) == ["decay", "paths", "blocks"]


def test_a_block_that_nothing_leads_to_is_marked_at_the_floor():
    """dh_T/dh_0 without a candidate: zero, and said so in the legend."""
    paths = replace(
        held_paths(), lines=(falling("direct", -0.1), falling("block c,c", -0.1), zero("block h,h"))
    )
    figure = blocks_figure([paths])
    (ax,) = panels(figure).values()
    assert len(marks(ax, "v")) == 1
    assert "exactly zero" in words(figure)


def test_the_full_path_has_the_colour_of_its_gate_value():
    """Red for 0.9 here as in the figure of the decay."""
    (ax,) = panels(paths_figure([held_paths(0.9)])).values()
    assert line(ax, "full").get_color() == gate_color(0.9)
