"""The tables, the CSV rows and the figure of parameter counts."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest
from rich.console import Console

from gradflow.cells import LSTM, registry
from gradflow.documents import csv_text
from gradflow.experiments.params import count_networks
from gradflow.present.params import bytes_text, match_rows, params_outputs, params_table
from gradflow.present.params_figure import parameter_parts, params_figure
from gradflow.present.theme import alt_text
from gradflow.records import Architecture, ParamsResult, Workload
from tests.present.drawn import texts_on_texts, texts_outside, words

SMALL = count_networks(Architecture("lstm", 5, 4))
MATCHED = count_networks(Architecture("lstm", 10, 128), match="lstm:128")
DEEP = count_networks(
    Architecture("lstm", 300, 2048, 3, bidirectional=True, projection=512, output_size=30_000),
    match=10**8,
    workload=Workload(64, 1000, 4),
)
CASES = {"small": SMALL, "matched": MATCHED, "deep": DEEP}
each_case = pytest.mark.parametrize("result", CASES.values(), ids=CASES.keys())


def shown(result: ParamsResult, width: int) -> str:
    """Return what a terminal of this width shows."""
    stream = io.StringIO()
    Console(file=stream, width=width, legacy_windows=False).print(params_table(result))
    return stream.getvalue()


def column(result: ParamsResult, heading: str) -> list[str]:
    """Return a column of the first table by its heading."""
    table = params_table(result)
    index = [entry.line for entry in table.columns].index(heading)
    return [row[index] for row in table.rows]


def test_both_conventions_are_shown():
    """I=5, H=4: 40, 120, 160 with one bias per gate; 44, 132, 176 with torch's two."""
    assert column(SMALL, "cell") == ["rnn", "gru", "lstm"]
    assert column(SMALL, "one bias per gate") == ["40", "120", "160"]
    assert column(SMALL, "two biases per gate") == ["44", "132", "176"]
    assert column(SMALL, "as built") == ["44", "132", "176"]
    assert column(SMALL, "multiply-adds per step") == ["36", "108", "144"]


def test_the_convention_asked_for_stands_first():
    """--one-bias changes the order of columns and of matches, and no number."""
    asked = replace(MATCHED, config={"one_bias": True, "match": "lstm:128"})
    assert [entry.line for entry in params_table(asked).columns][1] == "one bias per gate"
    assert [entry.line for entry in params_table(MATCHED).columns][1] == "two biases per gate"
    (matches,) = params_table(asked).more
    assert matches.rows[0][0] == "one"
    assert "lstm:128" in matches.title


def test_the_matched_widths_are_a_table_of_their_own():
    """An LSTM of 128 on 10 inputs (71680): a GRU of 149 (71967), an RNN of 262 (71788)."""
    (matches,) = params_table(MATCHED).more
    assert [row[1:] for row in matches.sections[0]] == [
        ("71680", "rnn", "262", "71788", "+108", "+0.15"),
        ("71680", "gru", "149", "71967", "+287", "+0.4"),
        ("71680", "lstm", "128", "71680", "0", "0"),
    ]
    assert params_table(SMALL).more == ()


@pytest.mark.parametrize("width", [80, 120])
@each_case
def test_every_table_fits_a_terminal(result: ParamsResult, width: int):
    """A row is a line at 80 columns, whatever is counted."""
    lines = shown(result, width).splitlines()
    assert max(len(line) for line in lines) <= width
    for count in result.counts:
        assert any(
            line.split()[:1] == [count.architecture.cell] and str(count.built) in line.split()
            for line in lines
        )


def test_csv_has_every_number():
    """A row per cell and a row per match, the latter only where widths were matched."""
    outputs = params_outputs(MATCHED)
    assert list(outputs.tables) == ["params", "matches"]
    assert list(params_outputs(SMALL).tables) == ["params"]
    rows = list(csv.DictReader(io.StringIO(csv_text(outputs.rows))))
    assert [int(row["two_biases"]) for row in rows] == [17920, 53760, 71680]
    gru = next(row for row in match_rows(MATCHED) if (row["cell"], row["biases"]) == ("gru", 2))
    assert gru["relative_difference"] == 287 / 71680


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_960, "1.0 MB"), (10**18, "1,000.0 PB")],
)
def test_bytes_are_read_in_a_fitting_unit(count: int, text: str):
    """1 kB is 1000 B; the unit changes before the number would round to 1000.0."""
    assert bytes_text(count) == text


@each_case
@pytest.mark.parametrize("style", ["screen", "paper"])
def test_no_word_of_the_figure_lies_on_another(result: ParamsResult, style: str):
    """Bars, totals and names have their own places."""
    figure = params_figure(result, style=style)
    assert texts_on_texts(figure) == []
    assert texts_outside(figure) == []


@each_case
def test_the_parts_of_a_bar_add_up_to_what_is_built(result: ParamsResult):
    """Input and recurrent weights, projection, two biases and head are all there is."""
    for count in result.counts:
        assert sum(parameter_parts(count).values()) == count.built
    (ax,) = params_figure(result).axes
    width = sum(patch.get_width() for patch in ax.patches)
    assert width == sum(count.built for count in result.counts)


def test_the_caption_tells_the_whole_network():
    """Layers, directions, projection and head count too, so the bars cannot be read without."""
    caption = " ".join(words(params_figure(DEEP)).split())
    assert "input 300, hidden 2048, 3 layers, both directions, projection 512" in caption
    assert "head of 30000" in caption


def test_the_legend_names_only_what_there_is():
    """Without a head and a projection none is drawn; the alt text has the numbers."""
    text = words(params_figure(SMALL))
    assert "recurrent weights" in text
    assert "head" not in text
    assert "lstm 176: input weights 80, recurrent weights 64, bias 16, second bias 16" in alt_text(
        params_figure(SMALL)
    )


def test_a_cell_without_a_formula_has_dashes(monkeypatch: pytest.MonkeyPatch):
    """A plug-in's cell is counted as built; what needs a formula is absent."""
    monkeypatch.setitem(registry._registered, "mine", lambda i, h, bias=True: LSTM(i, h, bias=bias))
    result = count_networks(Architecture("mine", 3, 5), ["mine"], match="lstm:8")
    assert column(result, "one bias per gate") == ["-"]
    assert column(result, "as built") == ["200"]
    assert "as built 200" in alt_text(params_figure(result))
