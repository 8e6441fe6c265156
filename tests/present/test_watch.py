"""A watched training as panel, table, CSV rows and heat map."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console

from gradflow.present import plot
from gradflow.present.notebook import result_html
from gradflow.present.theme import alt_text, figure_bytes
from gradflow.present.watch import profile_rows, watch_outputs, watch_rows, watch_table
from gradflow.present.watch_changes import horizon_changes
from gradflow.present.watch_figure import watch_figure
from gradflow.present.watch_map import profile_map
from gradflow.present.watch_words import far_text, horizon_text, sparkline, verdict
from gradflow.records.watch import BrokenTensor, WatchRun
from gradflow.watching.findings import FindingMemory, sample_findings
from tests.data.watched_runs import flow_layer, flow_sample, improving_run
from tests.present.drawn import line, texts_on_texts, texts_outside, words

PLACE = ("rnn", 0, "forward", 0)


def _run(*samples, **changes) -> WatchRun:
    memory = FindingMemory()
    found = tuple(finding for sample in samples for finding in memory.new_of(sample))
    return WatchRun(samples=samples, findings=found, config={"every": 100}, **changes)


def _levels(*levels: tuple[float, int]) -> WatchRun:
    """Return a training whose gradient falls by each factor for a number of samples."""
    factors = [factor for factor, count in levels for _ in range(count)]
    return _run(*(flow_sample(100 * i, flow_layer(f, 60)) for i, f in enumerate(factors)))


def _cut(at: int, steps: int = 60):
    curve = tuple(-0.05 * d if d < at else None for d in range(steps))
    return flow_layer(0.9, steps, log10_dL_dh=curve, cut_at=at, horizon=None)


def _shown(run: WatchRun, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, legacy_windows=False)
    console.print(watch_table(run))
    return console.file.getvalue()


def _colors_at(figure: Figure) -> np.ndarray:
    meshes = figure.axes[0].collections
    return meshes[0].get_array()


def test_a_sparkline_has_its_last_step_on_the_right():
    """The highest block is the largest gradient; the lowest is a millionth of it."""
    assert sparkline((0.0, -3.0, -6.0, -60.0), 4) == "▁▁▅█"
    assert sparkline((5.0, 2.0, -1.0, -55.0), 4) == "▁▁▅█"


def test_steps_that_share_a_block_show_their_largest_gradient():
    """A peak is never lost."""
    curve = tuple(0.0 if distance == 37 else -9.0 for distance in range(100))
    assert sparkline(curve, 10) == "▁▁▁▁▁▁█▁▁▁"


def test_an_exact_zero_is_a_blank_in_a_sparkline():
    """A cut looks like one."""
    assert sparkline((0.0, 0.0, None, None), 4) == "  ██"
    assert sparkline((None, None), 2) == "  "
    assert sparkline((), 5) == ""


def test_a_horizon_is_told_as_far_as_it_is_known():
    """In steps, beyond the data, or at a cut; of what is not finite nothing is known."""
    assert horizon_text(flow_layer(0.1, 60)) == "3"
    assert horizon_text(flow_layer(0.99, 60)) == ">59"
    assert horizon_text(_cut(20)) == "cut at 20"
    broken = flow_layer(0.99, 60, first_non_finite=BrokenTensor("h", 3))
    assert (horizon_text(broken), far_text(broken)) == ("-", "-")


def test_what_is_left_at_the_start_is_a_power_of_ten_or_all():
    """Of a gradient that has not fallen everything is left, and 10^-0.0 is no way to write it."""
    assert far_text(flow_layer(0.1, 4)) == "10^-3.0"
    assert far_text(flow_layer(0.999, 20)) == "1"


def test_a_layer_is_judged_by_its_gravest_finding():
    """Vanishing is told at one layer of a module and holds for all of them."""
    one, other = flow_layer(0.1, 60), flow_layer(0.2, 60, layer=1)
    third = flow_layer(0.9, 20, name="head", saturated_fraction={"input": 1.0})
    found = sample_findings(flow_sample(0, one, other, third))
    assert [verdict(layer, found) for layer in (one, other, third)] == [
        "vanishes", "vanishes", "input saturated",
    ]  # fmt: skip
    assert verdict(flow_layer(0.9, 20), ()) == "fine"


def test_a_change_is_told_at_the_sample_from_which_it_holds():
    """From 3 steps to 31 at the sixth sample, beyond the data at the eleventh."""
    changes = horizon_changes(_levels((0.1, 5), (0.8, 5), (0.99, 5)), PLACE)
    assert [(change.update, change.text) for change in changes] == [
        (500, "3 to 31"),
        (1000, "31 to >59"),
    ]


def test_one_odd_batch_is_no_change():
    """The samples around it say the same."""
    assert horizon_changes(_levels((0.8, 5), (0.1, 1), (0.8, 5)), PLACE) == ()
    assert horizon_changes(_levels((0.8, 5), (0.81, 5)), PLACE) == ()
    assert horizon_changes(_levels((0.8, 1)), PLACE) == ()


def test_a_horizon_that_goes_up_and_down_all_the_time_has_few_changes_told():
    """What lasts longer counts then."""
    levels = [(0.5 if index % 2 else 0.8, 4) for index in range(100)]
    assert len(horizon_changes(_levels(*levels), PLACE)) <= 12


def test_a_cut_that_appears_is_a_change():
    """Somebody shortened the truncation."""
    samples = [flow_sample(i, flow_layer(0.99, 60)) for i in range(5)]
    samples += [flow_sample(i, _cut(20)) for i in range(5, 10)]
    (change,) = horizon_changes(_run(*samples), PLACE)
    assert (change.update, change.text) == (5, ">59 to cut at 20")


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_fits_a_terminal_and_tells_changes_and_findings(width: int):
    """No line is longer than the terminal is wide."""
    text = _shown(_levels((0.1, 5), (0.99, 5)), width)
    assert max(len(row) for row in text.splitlines()) <= width
    flat = " ".join(text.split())
    assert "update 500: horizon of rnn, layer 0, 3 to >59" in flat
    assert (
        "update 0: GF101 warning [rnn, layer 0]: The gradient from the loss falls to 1e-3" in flat
    )
    assert "Try: Set the forget gate" in flat


def test_a_training_without_a_warning_says_so():
    """The words that send a person elsewhere."""
    assert "gradient flow is fine" in watch_table(improving_run(3)).title


def test_a_log_without_samples_has_a_table_and_a_figure():
    """It ended before the first one."""
    outputs = watch_outputs(WatchRun(config={"every": 100}))
    assert "no sample yet" in outputs.table.title
    assert outputs.table.rows == ()
    assert figure_bytes(outputs.figures["watch"]).startswith(b"\x89PNG")


def test_rows_hold_every_sample_and_profiles_every_distance():
    """What a spreadsheet needs."""
    run = improving_run(4, 10)
    rows = watch_rows(run)
    assert len(rows) == 8
    assert rows[2]["update"] == 100
    assert rows[2]["gate_mean_forget"] == run.samples[1].layers[0].gate_means["forget"]
    profiles = profile_rows(run)
    assert len(profiles) == 4 * 2 * 10
    assert profiles[1]["log10_dL_dh"] == run.samples[0].layers[0].log10_dL_dh[1]


def test_a_notebook_shows_table_and_figure():
    """As every result does."""
    page = result_html(improving_run(3))
    assert "<img" in page
    assert "<table" in page


@pytest.mark.parametrize("style", ["screen", "paper"])
@pytest.mark.parametrize(
    "run",
    [
        improving_run(12),
        _levels((0.1, 20), (0.8, 20), (0.99, 20)),
        _run(*(flow_sample(i, *(flow_layer(0.5, 9, layer=n) for n in range(11))) for i in (0, 7))),
        _run(flow_sample(3, flow_layer(0.1, 60, name="a.long.name.of.a.module." * 6))),
    ],
    ids=["improving", "levels", "many layers", "one sample"],
)
def test_no_word_of_the_figure_lies_on_another(run: WatchRun, style: str):
    """Labels of changes give way to each other."""
    figure = watch_figure(run, style=style)
    assert texts_on_texts(figure) == []
    assert texts_outside(figure) == []


def test_no_update_that_was_not_is_written_at_the_axis():
    """Columns of samples reach beyond the first and the last; updates do not begin below 0."""
    figure = watch_figure(_levels((0.1, 3)))
    assert [float(tick) for tick in figure.axes[0].get_xticks()] == [
        0.0,
        40.0,
        80.0,
        120.0,
        160.0,
        200.0,
    ]
    alone = watch_figure(_run(flow_sample(7, flow_layer(0.5, 9))))
    assert list(alone.axes[0].get_xticks()) == [7.0]


def test_a_horizon_beyond_the_last_step_runs_along_the_edge():
    """Also where the graph is cut exactly there, as in a window of truncated backpropagation."""
    run = _run(*(flow_sample(i, _cut(20, 20)) for i in range(3)))
    (ax,) = [each for each in watch_figure(run).axes if each.get_title(loc="left")]
    assert line(ax, "horizon").get_ydata().tolist() == [19.0] * 3


def test_a_legend_in_several_lines_is_read_line_by_line():
    """From the largest gradient to the least, then the marks."""
    run = _run(
        *(flow_sample(i, *(flow_layer(0.5, 9, layer=n) for n in range(2))) for i in range(3))
    )
    (legend,) = watch_figure(run, style="paper").legends
    boxes = [(text.get_window_extent(), text.get_text()) for text in legend.get_texts()]
    boxes.sort(key=lambda pair: (-round(pair[0].y0), pair[0].x0))
    told = [name for _, name in boxes]
    assert told[0] == "largest"
    assert told.index("$10^{-2}$") < told.index("$10^{-4}$") < told.index("$10^{-6}$")


def test_the_heat_map_is_the_profiles_against_their_largest():
    """Rows are distances from the end, columns samples; a zero is no missing step."""
    rows = [
        (0, flow_layer(0.1, 4, log10_dL_dh=(2.0, 1.0, 0.0, -1.0))),
        (5, _cut(2, 3)),
        (9, flow_layer(0.1, 4, first_non_finite=BrokenTensor("h", 0))),
    ]
    updates, values = profile_map(rows, "h")
    assert updates.tolist() == [0.0, 5.0, 9.0]
    assert values[:, 0].tolist() == [0.0, -1.0, -2.0, -3.0]
    assert values[:3, 1].tolist() == [0.0, -0.05, -np.inf]
    assert np.isnan(values[3, 1])
    assert np.isnan(values[:, 2]).all()


def test_a_long_training_is_thinned_to_what_can_be_seen():
    """Of 3000 samples over 1000 steps the first and the last are kept."""
    layer = flow_layer(0.99, 1000)
    rows = [(update, layer) for update in range(3000)]
    updates, values = profile_map(rows, "h")
    assert values.shape[0] <= 256
    assert values.shape[1] <= 401
    assert updates[0] == 0
    assert updates[-1] >= 2900


def test_the_figure_draws_the_horizon_its_changes_and_the_findings():
    """Over the heat map, at their updates."""
    figure = watch_figure(_levels((0.1, 5), (0.99, 5)))
    ax = figure.axes[0]
    horizon = line(ax, "horizon")
    assert horizon.get_ydata()[0] == pytest.approx(3.0)
    assert horizon.get_ydata()[-1] == 59.0
    assert [item.get_xdata()[0] for item in ax.lines if item.get_label() == "_change"] == [500]
    assert line(ax, "GF101").get_xdata()[0] == 0
    assert "3 to >59" in words(figure)
    assert "horizon 3 at first, >59 at last" in alt_text(figure)


def test_the_cell_state_can_be_drawn_instead():
    """dL/dc of an LSTM; a layer that has none is left out."""
    layer = flow_layer(0.5, 3, log10_dL_dc=(0.0, -2.0, -4.0))
    sample = flow_sample(0, layer, flow_layer(0.5, 3, layer=1, log10_dL_dc=None))
    run = replace(_run(sample), config={"state": "c"})
    figure = watch_figure(run)
    assert len([ax for ax in figure.axes if ax.collections]) == 1
    assert _colors_at(figure).ravel().tolist() == [0.0, -2.0, -4.0]
    assert "||dL/dc||" in words(figure)


def test_the_same_training_gives_the_same_bytes():
    """Also where the heat map is a picture inside the SVG."""
    run = improving_run(3)
    assert figure_bytes(watch_figure(run), "svg") == figure_bytes(watch_figure(run), "svg")


def test_a_script_draws_a_training_by_name():
    """`gf.plot.watch(run)` is the figure."""
    run = improving_run(3)
    assert alt_text(plot.watch(run)) == alt_text(watch_figure(run))


def test_a_state_that_no_layer_has_is_said_to_be_missing():
    """A GRU has no c."""
    run = replace(_run(flow_sample(0, flow_layer(0.5, 3, log10_dL_dc=None))), config={"state": "c"})
    assert "No layer has a gradient of c to draw." in words(watch_figure(run))
