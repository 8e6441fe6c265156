"""The tables, CSV rows and figures of a benchmark."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from gradflow.present.benchmark import benchmark_outputs, benchmark_rows, benchmark_table
from gradflow.present.benchmark_gradient import gradient_figure
from gradflow.present.benchmark_learning import learning_figure, mean_curve
from gradflow.present.benchmark_looks import model_looks
from gradflow.present.benchmark_plan import plan_table
from gradflow.present.benchmark_scores import accuracy_figure, cost_figure
from gradflow.present.theme import alt_text
from gradflow.records.benchmark import NO_RESULT, BenchmarkResult
from gradflow.records.benchmark_plan import BenchmarkPlan
from gradflow.records.benchmark_runs import LearningCurve, Spread
from tests.present.benchmark_results import USUAL, result
from tests.present.drawn import line, marks, panels, texts_on_texts, texts_outside

LONG = ("some/where/minimal_gated_unit.py:make_cell", "torch-default")
CASES = {
    "copy": result(),
    "signal": result("signal", (10, 50), short=True),
    "adding, one delay": result("adding", (20,), USUAL[:2]),
    "own cell": result("copy", (5, 200), (*USUAL, LONG)),
    "close delays": result("signal", (10, 12, 20), USUAL[1:3]),
    "zeros": result("signal", (50,), USUAL, zeros=True),
}
FIGURES = {
    "learning": learning_figure,
    "accuracy": accuracy_figure,
    "cost": cost_figure,
    "gradient": gradient_figure,
}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def shown(case: BenchmarkResult, width: int) -> str:
    """Return what a terminal of this width shows."""
    stream = io.StringIO()
    Console(file=stream, width=width, legacy_windows=False).print(benchmark_table(case))
    return stream.getvalue()


# tables


@each_case
def test_both_comparisons_and_their_costs_are_always_shown(case: BenchmarkResult):
    """Same width, nearest parameter count: outcomes and costs of each."""
    table = benchmark_table(case)
    titles = [table.title.splitlines()[-1], *(part.title for part in table.more)]
    wide, matched = "Same hidden width, 32 units", "Nearest parameter count, to 6,578"
    for at, title in ((0, wide), (4, matched)):
        assert titles[at : at + 3] == [title, f"Losses over seeds. {title}", f"Costs. {title}"]
        assert titles[at + 3].startswith("Gradient flow")
        assert titles[at + 3].endswith(title)
    for part in (table, table.more[0], table.more[3], table.more[4]):
        assert len(part.sections) == len(case.tasks)
        assert all("no memory" in section[0] for section in part.sections)


def test_a_row_has_verdict_and_spread_beside_the_baseline():
    """ln K = 2.079 and 1/8 without memory; a model that is there is "not learned"."""
    section = benchmark_table(CASES["copy"]).sections[2]
    assert section[0] == (
        "50",
        "-",
        "no memory",
        "-",
        "-",
        "0.125",
        "",
        "0.1733",
        "2.079",
        "baseline",
    )
    assert section[1][-1] == "not learned"
    assert section[1][5:7] == ("0.125", "0.105..0.145")
    assert section[1][1:5] == ("rnn", "torch-default", "32", "0.003")


def test_losses_have_their_spread_over_seeds():
    """A copy's loss over all steps and on recall; of a signal there is one loss."""
    case = CASES["copy"]
    row = replace(
        case.rows[0], loss=Spread(0.25, 0.125, 0.375), recall_loss=Spread(1.5, 1.25, 1.75)
    )
    losses = benchmark_table(replace(case, rows=(row,))).more[0]
    assert losses.rows[0] == ("1", "-", "no memory", "0.9452", "", "2.079", "")
    assert losses.rows[1][3:] == ("0.25", "0.125..0.375", "1.5", "1.25..1.75")
    signal = benchmark_table(CASES["signal"]).more[0]
    assert [len(cells) for cells in signal.rows] == [5] * len(signal.rows)


def test_seconds_of_a_long_training_are_written_out():
    """4321 s, and no 4.32e+03."""
    case = CASES["signal"]
    costs = {**case.rows[0].costs, "training_seconds": Spread(4321.4, 4000.0, 4600.0)}
    row = replace(case.rows[0], costs=costs)
    assert "4321" in benchmark_table(replace(case, rows=(row,))).more[1].rows[0]


def test_seeds_that_differ_are_counted():
    """One of two seeds learned."""
    case = CASES["signal"]
    row = replace(case.rows[0], learned=1)
    table = benchmark_table(replace(case, rows=(row,)))
    assert table.sections[0][1][-1] == "learned, 1/2"


def test_a_model_without_a_result_keeps_its_row():
    """Dashes, and the words."""
    case = CASES["signal"]
    row = replace(
        case.rows[0],
        verdict=NO_RESULT,
        learning_rate=None,
        accuracy=None,
        loss=None,
        recall_loss=None,
        costs={},
        reason="1 of 1 runs failed: boom",
    )
    broken = replace(case, rows=(row, *case.rows[1:]))
    assert benchmark_table(broken).sections[0][1] == (
        "10", "rnn", "torch-default", "32", "-", "-", "-", "-", "no result"
    )  # fmt: skip
    assert benchmark_rows(broken)[0]["reason"] == "1 of 1 runs failed: boom"
    for draw in FIGURES.values():
        assert draw(broken).axes


def test_rates_that_are_stable_at_short_delays_alone_have_a_table():
    """With gradient norms and updates at each delay; where there is none, that is said."""
    table = benchmark_table(CASES["signal"]).more[-1]
    assert table.title.startswith("Learning rates that are stable at short delays alone")
    assert [row[4:6] for row in table.rows] == [("10", "no, 1 diverged"), ("50", "no, 1 diverged")]
    assert table.rows[0][6:9] == ("0.4", "50", "250")
    assert "No learning rate was stable at a short delay" in shown(CASES["copy"], 300)


def test_the_notes_say_who_learned_and_what_is_supported():
    """Findings first, then baselines, then what may be concluded."""
    notes = benchmark_table(CASES["copy"]).notes
    assert notes[0].startswith("Learned at the same width: T=1: RNN, GRU, LSTM, LSTM forget-bias:2")
    assert notes[0].endswith("The nearest parameter count gives the same list.")
    assert notes[1].startswith("Learned: an accuracy of 0.9 or more")
    assert "N ln K/(T+2N) = 0.9452 over all 11 steps" in notes[2]
    assert "A longer delay is also more computation: 60 steps against 11." in notes


def test_sets_that_had_to_overlap_are_told():
    """Where each set is all sequences, the result says what it then means."""
    case = CASES["signal"]
    facts = tuple(replace(entry, shared=20) for entry in case.tasks)
    text = " ".join(benchmark_table(replace(case, tasks=facts)).notes)
    assert "there are 1250 different sequences, so training, validation and test sets" in text


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["copy", "signal"])
def test_every_row_is_one_line(name: str, width: int):
    """At 80 columns the delay moves above its rows; nothing is cut."""
    lines = shown(CASES[name], width).splitlines()
    assert max(len(line) for line in lines) <= width
    outcomes = [
        line
        for line in lines
        if "forget-bias:2" in line.split() and line.rstrip().endswith("learned")
    ]
    assert len(outcomes) == 2 * len(CASES[name].tasks)


def test_the_gradient_at_both_ends_is_a_row_at_each_moment():
    """RNN at T=50: 10^-0.3 a step back, over 49 steps; what is exactly zero is "zero"."""
    flow = benchmark_table(CASES["signal"]).more[2]
    row = next(cells for cells in flow.rows if cells[:2] == ("50", "rnn"))
    assert row == ("50", "rnn", "torch-default", "-15.7", "-14.2", "-12.8", *("-1",) * 3, "0.501")
    zeros = benchmark_table(CASES["zeros"]).more[2].rows[0]
    assert (zeros[3], zeros[-1]) == ("zero", "-")


# csv


def test_csv_has_every_row_run_curve_and_profile():
    """Five tables; what is not a number is empty with its reason."""
    tables = benchmark_outputs(CASES["zeros"]).tables
    assert list(tables) == ["benchmark", "learning_rates", "runs", "curves", "profiles"]
    assert len(tables["runs"]) == len(CASES["zeros"].runs)
    assert len(tables["curves"]) == 11 * len(CASES["zeros"].runs)
    zeros = [row for row in tables["profiles"] if row["zero_reason"] == "exact"]
    assert zeros
    assert all(row["log10_norm"] is None for row in zeros)
    assert {row["comparison"] for row in tables["benchmark"]} == {
        "same width",
        "nearest parameter count",
    }


# figures


@each_case
@pytest.mark.parametrize("style", ["screen", "paper"])
@pytest.mark.parametrize("name", FIGURES)
def test_no_word_of_a_figure_lies_on_another(name: str, case: BenchmarkResult, style: str):
    """Titles, legends, ticks of neighbours, captions."""
    figure = FIGURES[name](case, style=style)
    assert texts_on_texts(figure) == []
    assert texts_outside(figure) == []
    assert len(alt_text(figure)) > 40


def test_learning_curves_are_means_over_seeds_with_the_baseline():
    """A panel for each delay and comparison."""
    drawn = panels(learning_figure(CASES["copy"]))
    assert len(drawn) == 6
    ax = drawn["T=10, same width"]
    curve = line(ax, "RNN")
    expected = np.log(8.0) * np.exp(-np.arange(0, 501, 50) / 100.0) * 1.025
    np.testing.assert_allclose(curve.get_ydata(), expected)
    assert [*ax.lines[0].get_ydata()] == pytest.approx([np.log(8.0)] * 2)


def test_a_run_that_ended_keeps_its_last_value_in_the_mean():
    """Seeds stop at their own times."""
    curves = [
        LearningCurve(np.array(updates), *(np.array(values),) * 4)
        for updates, values in (([0, 10], [1.0, 0.0]), ([0, 10, 20], [1.0, 1.0, 0.5]))
    ]
    updates, mean = mean_curve(curves, "loss")
    assert updates.tolist() == [0, 10, 20]
    assert mean.tolist() == [1.0, 0.5, 0.25]


def test_accuracy_stands_against_delay_with_its_spread():
    """Bars from the least to the greatest seed; models stand a little apart."""
    drawn = panels(accuracy_figure(CASES["copy"]))
    ax = drawn["Same hidden width, 32 units"]
    (bars,) = [one for one in ax.containers if one.get_label() == "RNN"]
    points, _, (sticks,) = bars.lines
    np.testing.assert_allclose(points.get_ydata().astype(float), [0.97, 0.97, 0.125])
    np.testing.assert_allclose(sticks.get_segments()[0][:, 1], [0.94, 1.0])
    np.testing.assert_allclose(points.get_xdata().astype(float), [1, 10, 50], rtol=0.2)


def test_cost_marks_are_filled_at_the_same_width_and_hollow_at_the_same_parameters():
    """One mark for each row of both comparisons."""
    drawn = panels(cost_figure(CASES["signal"]))
    ax = drawn["Accuracy against time"]
    squares = marks(ax, "s")
    assert len(squares) == 4
    assert [item.get_markerfacecolor() for item in squares].count("none") == 2


def test_the_profile_is_the_mean_of_logarithms_at_each_moment():
    """A panel for each delay and moment; exact zeros stand on a floor."""
    drawn = panels(gradient_figure(CASES["signal"]))
    assert len(drawn) == 6
    curve = line(drawn["T=50, middle of training"], "GRU")
    back = 50 - np.arange(1, 51)
    np.testing.assert_allclose(curve.get_ydata(), -1.0 - (0.3 - 0.06 - 0.03) * back)
    floor = marks(panels(gradient_figure(CASES["zeros"]))["T=50, start of training"], "v")
    assert [len(item.get_xdata()) for item in floor] == [24]


def test_models_differ_in_hue_marker_or_dashes():
    """And look the same in every figure."""
    looks = list(model_looks(CASES["own cell"]).values())
    assert len({(look.color, look.marker, str(look.dashes)) for look in looks}) == len(looks)
    assert looks[-1].name == "minimal_gated_unit.py:make_cell"


# record and plan


@each_case
def test_a_stored_result_is_read_back(case: BenchmarkResult):
    """Every number, with zeros and what is missing."""
    document = json.loads(json.dumps(case.to_json(), allow_nan=False))
    again = BenchmarkResult.from_json(document)
    assert json.loads(json.dumps(again.to_json(), allow_nan=False)) == document
    assert again.rows == case.rows
    assert again.models == case.models


def test_a_plan_says_what_is_there_and_how_long_the_rest_takes():
    """Hours in hours, on so many workers; a guess is called one."""
    models = CASES["copy"].models
    plan = BenchmarkPlan(
        "copy", (1, 10), models, (0.01,), 3, (), 42, 12, 1, 29, 20_000.0, calibrated=True
    )
    table = plan_table(plan, 2)
    assert len(table.rows) == len(models)
    assert "Of 42 runs 12 are there, 1 failed; 29 would be made." in table.notes
    assert "about 2.8 h on 2 workers (from the runs that are there)" in table.notes[2]
    guess = plan_table(replace(plan, calibrated=False, seconds=30.0), 1)
    assert "about 30 s on 1 worker (a guess" in guess.notes[2]
    done = plan_table(replace(plan, to_run=0, seconds=0.0), 1)
    assert done.notes[2] == "Nothing is left to do."
