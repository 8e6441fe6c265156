"""`gradflow spectrum` as a whole: settings in, exponents, errors, checks and notes out."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from gradflow.cells import LSTM
from gradflow.engine import lyapunov_spectrum
from gradflow.engine.lyapunov.log_determinant import mean_log_determinant
from gradflow.errors import RequestError, SeriesError, SettingError, ShapeError, UnknownNameError
from gradflow.experiments.spectrum import run_spectrum
from gradflow.experiments.spectrum_subjects import spectrum_subject
from gradflow.records.spectrum import SpectrumResult
from gradflow.settings.spectrum import SpectrumSettings
from tests import cases
from tests.engine.measuring import cell_of
from tests.reference import autograd_jacobian

SMALL = {"hidden": 6, "steps": 60, "warmup": 20}

USER_CELL = '''
import torch

class Halving(torch.nn.Module):
    """Halves one number and shrinks the other by ten, whatever the input."""

    input_size, hidden_size = 2, 2

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor([0.5, 0.1], dtype=torch.float64))

    def forward(self, x, h):
        return self.scale * h + x

def make_cell():
    return Halving()
'''


@pytest.fixture
def user_cell(tmp_path: Path) -> str:
    """A user's cell in a file."""
    path = tmp_path / "cells.py"
    path.write_text(USER_CELL)
    return f"{path}:make_cell"


def run(**settings: object) -> SpectrumResult:
    """Run a small spectrum."""
    return run_spectrum(SpectrumSettings(**{**SMALL, **settings}))


# closed form


def test_a_user_s_cell_is_measured_as_it_is(user_cell: str) -> None:
    """h' = (0.5, 0.1) h + x has ln 0.5 and ln 0.1 under any input, and no gain of ours."""
    for fed in ("zero", "random"):
        result = run(cell=user_cell, input=fed, steps=200)
        np.testing.assert_allclose(result.exponents, np.log([0.5, 0.1]), atol=1e-6)
        assert result.gain is None
        assert result.state_size == 2
        assert result.fed.width == 2
        assert result.passed
        assert result.notes == ()
    assert "--gain draws those of built-in cells alone" in run(cell=user_cell, gain=2.0).notes[0]


def test_a_quiet_network_follows_its_gain() -> None:
    """An RNN of one unit, W = w: at h = 0 the exponent is ln |w|, and w is the gain's draw."""
    settings = SpectrumSettings(cell="rnn", hidden=1, gain=0.5, start="zero", steps=5, warmup=0)
    (weight,) = spectrum_subject(settings).cell.weight_hh.detach().flatten()  # type: ignore[attr-defined]
    result = run_spectrum(settings)
    assert result.exponents[0] == pytest.approx(math.log(abs(weight)))
    assert result.sum == result.exponents[0]


def test_twice_the_gain_is_twice_the_weights() -> None:
    """The gain scales the recurrent weights alone: the same seed gives the same directions."""
    one, two = (
        spectrum_subject(SpectrumSettings(cell="lstm", gain=gain, hidden=400)).cell
        for gain in (1.0, 2.0)
    )
    weights = dict(one.named_parameters()), dict(two.named_parameters())  # type: ignore[attr-defined]
    torch.testing.assert_close(weights[1]["weight_hh"], 2 * weights[0]["weight_hh"])
    torch.testing.assert_close(weights[1]["weight_ih"], weights[0]["weight_ih"])
    assert weights[0]["weight_hh"].std().item() == pytest.approx(400**-0.5, rel=0.01)
    assert not weights[0]["bias_hh"].any()


# reference


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
def test_every_cell_passes_its_checks(cell: str) -> None:
    """Random input keeps all directions alive: the sum is the mean log determinant."""
    result = run(cell=cell, input="random")
    assert [check.name for check in result.checks] == [
        "every exponent is finite or a known zero",
        "the sum is the mean log determinant",
    ]
    assert result.passed
    assert np.all(np.diff(result.exponents) <= 0)


@cases.each_kind
def test_the_mean_log_determinant_is_autograd_s(kind: str) -> None:
    """LU of autograd's step Jacobians on torch's cells, after the warm-up."""
    subject = cases.random_subject(kind)
    expected = torch.linalg.slogdet(autograd_jacobian.step_jacobians(subject)[2:]).logabsdet.mean()
    found = mean_log_determinant(cell_of(subject.module), subject.inputs, subject.state, warmup=2)
    assert found.mean == pytest.approx(expected.item(), abs=1e-10)
    assert found.rounding < 1e-10 or found.mean == -math.inf  # a unit of relu may be shut


def test_a_state_that_fades_out_is_no_failed_check() -> None:
    """Near the zero state an LSTM's step loses half its rank: its smallest directions are known to
    fewer digits the longer the run, by QR as by LU, until they are lost. That is no fault.
    """
    results = [run(hidden=4, input_size=1000, steps=steps, warmup=10) for steps in (10, 40, 300)]
    assert all(result.passed for result in results)
    assert [math.isfinite(result.sum) for result in results] == [True, True, False]


@pytest.mark.parametrize("number", [1e39, 1e308])
def test_what_the_dtype_cannot_hold_is_refused(tmp_path: Path, number: float) -> None:
    """A gain or an input beyond float32 is told as that, not as a run that diverged."""
    np.save(tmp_path / "x.npy", np.full((90, 3), number))
    for given in ({"gain": number}, {"data": str(tmp_path / "x.npy")}):
        with pytest.raises(
            SettingError, match=f"^--{next(iter(given))}.*larger than torch.float32"
        ):
            run(cell="lstm", dtype="float32", **given)


def test_given_data_is_the_input(tmp_path: Path) -> None:
    """A file of (time, input) drives the cell: the numbers are the library's for that input."""
    series = np.random.default_rng(0).standard_normal((90, 3))
    np.save(tmp_path / "x.npy", series)
    settings = SpectrumSettings(data=str(tmp_path / "x.npy"), hidden=5, warmup=30)
    result = run_spectrum(settings)
    subject = spectrum_subject(settings)
    x = torch.as_tensor(series).unsqueeze(1)
    expected = lyapunov_spectrum(subject.cell, subject.state, x, warmup=30)
    np.testing.assert_array_equal(result.exponents, expected.exponents.numpy())
    assert (result.steps, result.warmup) == (60, 30)
    assert result.fed.kind == "data"
    assert result.fed.file == "x.npy"
    assert len(result.fed.sha256 or "") == 64
    assert isinstance(subject.cell, LSTM)
    assert subject.cell.input_size == 3


# edges


def test_networks_and_trajectories_are_rows() -> None:
    """Two networks of three trajectories are six runs; the mean over them is reported."""
    result = run(cell="rnn", gain=2.0, networks=2, trajectories=3, count=2)
    assert result.by_row.shape == (6, 2)
    np.testing.assert_allclose(result.by_row.mean(axis=0), result.exponents)
    alone = run(cell="rnn", gain=2.0, networks=1, trajectories=3, count=2)
    assert alone.by_row.shape == (3, 2)
    assert (result.networks, result.trajectories) == (2, 3)


def test_rows_of_data_are_trajectories(tmp_path: Path) -> None:
    """(time, batch, input) data runs one trajectory per row."""
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((40, 4, 1)))
    result = run_spectrum(
        SpectrumSettings(data=str(tmp_path / "x.npy"), hidden=3, warmup=10, cell="gru")
    )
    assert result.trajectories == 4
    assert result.by_row.shape == (4, 3)


def test_exact_zeros_are_explained() -> None:
    """A silent LSTM from the zero state shows nothing of its output gate: H exact zeros, a note."""
    result = run(start="zero")
    assert result.zero_reason == (None,) * 6 + ("exact",) * 6
    assert result.vanished == 6
    assert result.sum == -math.inf
    assert "6 of 12 exponents are minus infinity: the cell is built so" in result.notes[0]
    assert result.passed


def test_the_document_is_strict_json_and_reads_back() -> None:
    """-inf is null with its reason beside it; the record read back says the same."""
    result = run(start="zero", count=8)
    text = json.dumps(result.to_json(), allow_nan=False)
    document = json.loads(text)
    assert document["schema"] == "gradflow/spectrum/1"
    assert document["results"]["exponents"][-1] is None
    assert document["results"]["zero_reason"][-1] == "exact"
    assert document["results"]["sum"] is None
    again = SpectrumResult.from_json(document)
    assert again.to_json() == result.to_json()
    np.testing.assert_array_equal(again.exponents, result.exponents)


def test_progress_ends_at_the_whole_run() -> None:
    """Steps done and steps in all, warm-up included."""
    seen: list[tuple[str, int, int]] = []
    run_spectrum(
        SpectrumSettings(**SMALL),
        progress=lambda what, done, total: seen.append((what, done, total)),
    )
    assert seen[-1] == ("lstm", 80, 80)


def test_float32_states_are_measured_in_float64() -> None:
    """The dtype is the trajectory's; the exponents stay near those of float64."""
    narrow, wide = (
        run(cell="gru", dtype=dtype, input="random") for dtype in ("float32", "float64")
    )
    np.testing.assert_allclose(narrow.exponents, wide.exponents, atol=1e-3)


# words


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"cell": "lsmt"}, UnknownNameError, "no cell 'lsmt'. Did you mean 'lstm'"),
        ({"count": 13}, ShapeError, "a state of 12 numbers has as many exponents; got count 13"),
        ({"data": "x.txt"}, SeriesError, "--data reads .npy, .npz and .csv"),
        ({"data": "nowhere.npy"}, SeriesError, "cannot read 'nowhere.npy': No such file"),
    ],
)
def test_a_wrong_request_is_one_message(
    settings: dict[str, object], error: type[RequestError], words: str
) -> None:
    """What is asked for and is not there is named, with the cure."""
    with pytest.raises(error, match=words):
        run(**settings)


def test_networks_are_for_built_in_cells(user_cell: str) -> None:
    """A user's cell brings its own weights, so it is one network."""
    with pytest.raises(SettingError, match="--networks draws the weights of a built-in cell"):
        run(cell=user_cell, networks=2)


def test_data_that_does_not_fit_is_refused(tmp_path: Path, user_cell: str) -> None:
    """Too short, too wide, or of other rows than asked for."""
    path = str(tmp_path / "x.npy")
    np.save(path, np.zeros((30, 3, 1)))
    with pytest.raises(ShapeError, match="30 steps, of which the first 30 are the warm-up"):
        run_spectrum(SpectrumSettings(data=path, warmup=30))
    with pytest.raises(ShapeError, match="3 batch rows, and --networks times --trajectories are 2"):
        run_spectrum(SpectrumSettings(data=path, warmup=5, trajectories=2))
    with pytest.raises(ShapeError, match=r"--data has 1 inputs, and .* takes 2"):
        run_spectrum(SpectrumSettings(data=path, warmup=5, cell=user_cell))
