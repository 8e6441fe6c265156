"""`gf.plot`: figures in a script or a notebook."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import gradflow as gf
from gradflow.errors import ShapeError, UnknownNameError
from gradflow.present.notebook import PRESENTERS
from tests.present.decays import decay_of, held_curve, two_rows
from tests.present.drawn import line, panels, texts_on_texts, words
from tests.present.every_figure import result_of


def test_a_decay_without_axes_is_the_whole_figure():
    """All panels, in a new figure."""
    assert len(panels(gf.plot.decay(two_rows()))) == 4


def test_a_decay_of_one_panel_goes_into_the_axes_given():
    """The curve, its trend, its label and both axis names are there."""
    figure = Figure(figsize=(6, 4))
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    assert gf.plot.decay(decay_of(held_curve(0.9)), left) is figure
    assert line(left, "f=0.9").get_ydata()[-1] == pytest.approx(100 * np.log10(0.9))
    assert left.get_xlabel() == "T (steps)"
    assert "log scale" in left.get_ylabel()
    assert not right.lines


def test_one_of_several_panels_is_named():
    """A result of four panels needs a cell and a gain, and the message lists them."""
    ax = Figure(figsize=(6, 4)).subplots()
    with pytest.raises(
        UnknownNameError, match=r"4 fit.*LSTM, candidate gain 0; LSTM, candidate gain 1"
    ):
        gf.plot.decay(two_rows(), ax)
    gf.plot.decay(two_rows(), ax, cell="gru", candidate_gain=1)
    assert ax.get_title(loc="center") == "GRU, candidate gain 1"
    with pytest.raises(UnknownNameError, match="0 fit"):
        gf.plot.decay(two_rows(), ax, cell="rnn")


def test_worked_steps_counts_and_initializations_draw_themselves():
    """Each result has its figure under the command's name, in both styles."""
    steps = gf.work_gru(2, 0.75, candidate=-0.4)
    counts = gf.run_params(gf.ParamsSettings(hidden=4))
    small = gf.InitsSettings(init="he", hidden=3, steps=4, seeds=1)
    for style in ("screen", "paper"):
        assert "kept 1.5" in words(gf.plot.step(steps, style=style))
        assert "LSTM" in words(gf.plot.params(counts, style=style))
        assert "LSTM: norm over T" in words(gf.plot.inits(gf.run_inits(small), style=style))


def test_norms_may_be_lists_arrays_or_tensors():
    """What a training loop collected is drawn as it is, gradients attached or not."""
    norms = [1.0, 0.5, 0.25]
    tensor = torch.tensor(norms, dtype=torch.bfloat16, requires_grad=True)
    for values in (norms, np.array(norms), tensor):
        (ax,) = gf.plot.norms(range(3), values).axes
        assert line(ax, "positive: 3").get_ydata() == pytest.approx(np.log10(norms))


def test_norms_go_into_the_axes_given_with_a_legend():
    """The legend counts what has no logarithm there too."""
    figure = Figure(figsize=(6, 4))
    ax = figure.subplots()
    assert gf.plot.norms(range(4), [1.0, 0.5, 0.0, float("nan")], ax, step="lag") is figure
    assert {"zero: 1", "not a number: 1"} <= set(words(figure).split("\n"))
    assert ax.get_xlabel() == "lag"
    assert texts_on_texts(figure) == []


def test_norms_and_steps_must_pair():
    """Two steps and three norms are a mistake, said before anything is drawn."""
    with pytest.raises(ShapeError, match="lists of one length"):
        gf.plot.norms([0, 1], [1.0, 0.5, 0.2])


def own_axes() -> Axes:
    """One of two axes of a figure of the user's own."""
    left, _ = Figure(figsize=(7, 4)).subplots(1, 2)
    return left


@pytest.mark.parametrize("profile", ["lag", "gradient", "gates", "depth"])
def test_an_inspection_draws_each_of_its_profiles(profile: str):
    """For every layer in a figure of its own, or one layer into the axes given."""
    result = result_of("inspect")
    whole = gf.plot.inspect(result, profile=profile)
    assert len([ax for ax in whole.axes if ax.axison]) == (1 if profile == "depth" else 2)
    ax = own_axes()
    layer = None if profile == "depth" else 1
    assert gf.plot.inspect(result, ax, profile=profile, layer=layer) is ax.figure
    assert ax.get_xlabel() == whole.axes[-1].get_xlabel() != ""
    assert ax.lines or ax.images or ax.patches


def test_an_inspected_layer_is_drawn_as_measured():
    """The curve by lag of the layer that was named, beside the product of its keep gates."""
    result = result_of("inspect")
    ax = own_axes()
    gf.plot.inspect(result, ax, layer=1)
    measured = result.layers[1]
    assert line(ax, "full").get_ydata() == pytest.approx(measured.log10_norm)
    assert line(ax, "direct").get_ydata() == pytest.approx(measured.direct_log10_norm)
    assert "layer 1, forward (lstm)" in ax.get_title()


def test_a_layer_or_a_profile_that_is_not_there_is_named():
    """Two layers need a number; a typing error has its cure; a gradient needs a loss."""
    result = result_of("inspect")
    with pytest.raises(UnknownNameError, match=r"layer=; there are: 0: .*layer 0.*; 1: "):
        gf.plot.inspect(result, own_axes())
    with pytest.raises(UnknownNameError, match="one ax takes one layer"):
        gf.plot.inspect(result, own_axes(), layer=2)
    with pytest.raises(UnknownNameError, match="Did you mean 'gates'"):
        gf.plot.inspect(result, profile="gate")
    silent = gf.inspect(torch.nn.RNN(2, 3), torch.randn(5, 1, 2))
    for profile in ("gradient", "depth"):
        with pytest.raises(UnknownNameError, match="needs a loss"):
            gf.plot.inspect(silent, profile=profile)
    with pytest.raises(UnknownNameError, match="needs a layer with gates"):
        gf.plot.inspect(silent, profile="gates")


def test_a_saturation_draws_one_dtype_into_axes():
    """The tiles of float32, with the cells' names; two dtypes need a name."""
    result = result_of("saturate")
    assert len(gf.plot.saturate(result).axes) == 2
    ax = own_axes()
    assert gf.plot.saturate(result, ax, dtype="float32") is ax.figure
    whole = gf.plot.saturate(result).axes[1]
    assert len(ax.patches) == len(whole.patches) > 0
    assert ax.get_yticklabels()[0].get_text() == "LSTM (gradflow)"
    with pytest.raises(UnknownNameError, match=r"2 fit.*there are: float16, float32"):
        gf.plot.saturate(result, own_axes())


def test_parity_and_timings_draw_into_axes():
    """A mark for every quantity; a line for every method."""
    ax = own_axes()
    gf.plot.parity(result_of("parity"), ax)
    whole = gf.plot.parity(result_of("parity")).axes[0]
    assert len(ax.lines) == len(whole.lines) >= 2 * len(result_of("parity").comparisons)
    timings = own_axes()
    gf.plot.speed(result_of("speed"), timings)
    assert "gradflow" in {str(item.get_label()) for item in timings.lines}
    with pytest.raises(UnknownNameError, match="one ax takes one panel"):
        gf.plot.speed(result_of("speed"), own_axes(), panel=3)


def test_a_decay_draws_its_departure_and_its_blocks():
    """The sweep of one cell into axes; blocks where paths were measured of a state of parts."""
    result = result_of("decay")
    ax = own_axes()
    gf.plot.departure(result, ax, cell="gru")
    assert line(ax, "z=0.1").get_ydata()[0] == pytest.approx(-1.0)
    with pytest.raises(UnknownNameError, match=r"2 fit.*lstm, gru"):
        gf.plot.departure(result, own_axes())
    with pytest.raises(UnknownNameError, match="fewer than three"):
        gf.plot.departure(two_rows())
    assert len(gf.plot.blocks(result).axes) == 6
    with pytest.raises(UnknownNameError, match="has no paths"):
        gf.plot.blocks(two_rows())


def test_every_result_that_has_figures_has_a_function():
    """By the command's name, beside those of single figures."""
    assert set(PRESENTERS) <= set(gf.plot.__all__)
    for name in gf.plot.__all__:
        assert callable(getattr(gf.plot, name))
