"""`gf.plot`: figures in a script or a notebook."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

import gradflow as gf
from gradflow.errors import ShapeError, UnknownNameError
from tests.present.decays import decay_of, held_curve, two_rows
from tests.present.drawn import line, panels, texts_on_texts, words


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
