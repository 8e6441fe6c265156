"""Reading a side of a parity: by name, from a file, out of a user's module or step function."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from gradflow.cells import GRU, LSTM
from gradflow.cells.numpy_cells import NumpyGRU
from gradflow.checkpoints.parity_sides import SIDE_NAMES, Widths, read_side
from gradflow.checkpoints.sides import Problem, Side
from gradflow.checkpoints.sides.find_layout import find_layout
from gradflow.checkpoints.sides.tensor_files import read_tensors
from gradflow.errors import CellCallError, CellLoadError, ShapeError, UnknownNameError
from tests.data import parity_layers, parity_modules, parity_steps

WIDTHS = Widths()


def problem_of(side: Side, steps: int = 3) -> Problem:
    """Return a random run for a side."""
    generator = torch.Generator().manual_seed(3)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    return Problem(
        xs=normal(steps, 2, side.input_size),
        state=tuple(normal(2, side.hidden_size) for _ in side.parts),
        read_h=normal(steps, 2, side.hidden_size),
        read_last=tuple(normal(2, side.hidden_size) for _ in side.parts),
    )


# reference


@pytest.mark.parametrize("name", SIDE_NAMES)
def test_every_named_side_runs_and_differentiates(name: str):
    """A name gives a side of the widths asked for, with torch's weights in torch's places."""
    side = read_side(name, Widths(4, 6))
    assert (side.input_size, side.hidden_size) == (4, 6)
    layout = find_layout(side)
    assert all(block.tensor.startswith(("weight_", "bias_")) for block in layout.blocks)
    weights = layout.fill(layout.read(side.weights), side.weights)
    for key, tensor in side.weights.items():
        assert torch.equal(weights[key], tensor)
    gradients = side.gradients(weights, problem_of(side))
    assert not gradients.unreached


def test_differences_equal_autograd():
    """The gradient of a NumPy function, by differences, is that of torch's cell to 1e-9."""
    numpy = read_side(parity_steps.textbook_lstm, Widths(2, 3))
    torch_side = read_side("torch.LSTMCell", Widths(2, 3))
    problem = problem_of(torch_side, steps=2)
    one, other = find_layout(torch_side), find_layout(numpy)
    common = one.read(torch_side.weights)
    expected = torch_side.gradients(torch_side.weights, problem)
    found = numpy.gradients(other.fill(common, numpy.weights), problem)
    assert numpy.way == "finite differences"
    assert torch.allclose(found.xs, expected.xs, atol=1e-9, rtol=0)
    for part in ("h", "c"):
        assert torch.allclose(found.state[part], expected.state[part], atol=1e-9, rtol=0)
    pulled, wanted = other.pull(found.weights), one.pull(expected.weights)
    for name in ("weight_ih", "weight_hh", "bias_ih"):
        assert torch.allclose(pulled[name], wanted[name], atol=1e-9, rtol=0), name


# call forms


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (parity_steps.textbook_lstm, "a function of NumPy arrays (batch, width)"),
        (parity_steps.course_lstm, "a function of NumPy arrays (width, batch)"),
        (parity_steps.vector_rnn, "a function of NumPy arrays (width,)"),
        (parity_steps.d2l_gru, "a function of torch tensors (batch, width)"),
        (parity_steps.state_tuple_lstm, "a function of torch tensors (batch, width)"),
    ],
)
def test_a_functions_call_is_found_by_trying(function: object, what: str):
    """NumPy or torch, rows, columns or single vectors, arguments or a dict: told by running it."""
    assert read_side(function, WIDTHS).what == what


def test_a_module_may_take_h_and_c_apart():
    """cell(x, h, c) is read as cell(x, (h, c))."""
    side = read_side(parity_modules.Apart(), WIDTHS)
    assert side.parts == ("h", "c")
    assert "ih.weight" in side.weights


def test_a_layer_is_run_over_the_axis_that_is_time():
    """Its outputs must not move with later inputs: that decides, not what it calls itself."""
    side = read_side(parity_layers.Layer(), WIDTHS)
    assert side.what == "a layer over sequences"
    assert not side.faults
    mixed = read_side(parity_layers.BatchFirstInName(), WIDTHS)
    assert "says batch_first=True, but its recurrence runs over axis 0" in mixed.faults[0]


def test_a_batch_first_layer_of_torch_is_run_on_time_first_numbers():
    """The axes of torch's own layer are known and turned."""
    layers = [nn.GRU(3, 5, batch_first=flag).double() for flag in (False, True)]
    layers[1].load_state_dict(layers[0].state_dict())
    one, other = (read_side(layer, WIDTHS) for layer in layers)
    problem = problem_of(one)
    runs = [side.run(side.weights, problem.xs, problem.state).states["h"] for side in (one, other)]
    assert torch.equal(*runs)


def test_the_users_module_is_left_as_it_was():
    """Its weights, its mode and its precision are its own; the side works on a copy."""
    module = nn.LSTMCell(3, 5).train()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    side = read_side(module, WIDTHS)
    side.gradients({n: t * 2 for n, t in side.weights.items()}, problem_of(side))
    assert module.training
    for name, tensor in module.state_dict().items():
        assert torch.equal(tensor, before[name])
        assert tensor.dtype == torch.float32


def test_objects_are_sides_too():
    """Ours, a NumPy cell and a dict of tensors; each with its own weights."""
    ours = LSTM(2, 3)
    assert torch.equal(read_side(ours, WIDTHS).weights["weight_hh"], ours.weight_hh.double())
    numpy = NumpyGRU.random(2, 3, reset="before")
    assert read_side(numpy, WIDTHS).way == "by hand"
    tensors = dict(GRU(2, 3).double().state_dict())
    assert read_side(tensors, WIDTHS, name="weights").is_file


# files


def test_weights_are_read_from_every_kind_of_file(tmp_path: Path):
    """One layer's weights: .pt, wrapped and prefixed, .npz and .safetensors, all in float64."""
    layer = nn.LSTM(2, 3)
    state = layer.state_dict()
    torch.save(state, tmp_path / "plain.pt")
    torch.save(
        {"state_dict": {f"module.{k}": v for k, v in state.items()}}, tmp_path / "wrapped.tar"
    )
    np.savez(tmp_path / "arrays.npz", **{name: value.numpy() for name, value in state.items()})
    save_file(dict(state), tmp_path / "safe.safetensors")
    for file in tmp_path.iterdir():
        side = read_side(str(file), WIDTHS)
        assert side.kind == "lstm"
        for name, value in state.items():
            assert torch.equal(side.weights[name], value.double()), file


def test_a_file_that_would_run_code_is_refused(tmp_path: Path):
    """A whole pickled module is more than tensors."""
    torch.save(nn.LSTM(2, 3), tmp_path / "module.pt")
    with pytest.raises(CellLoadError, match="would run"):
        read_tensors(tmp_path / "module.pt")
    np.savez(tmp_path / "objects.npz", x=np.array([None]))
    with pytest.raises(CellLoadError, match="pickled Python objects"):
        read_tensors(tmp_path / "objects.npz")


@pytest.mark.parametrize("ending", [".pt", ".npz", ".safetensors"])
def test_a_damaged_file_is_one_message(tmp_path: Path, ending: str):
    """Cut short anywhere, or another thing under its name: the file and what it should be."""
    state = nn.LSTMCell(2, 3).state_dict()
    whole, damaged = tmp_path / f"whole{ending}", tmp_path / f"damaged{ending}"
    {
        ".pt": lambda: torch.save(state, whole),
        ".npz": lambda: np.savez(whole, **{k: v.numpy() for k, v in state.items()}),
        ".safetensors": lambda: save_file(state, whole),
    }[ending]()
    data = whole.read_bytes()
    for content in [b"", b"text", *(data[: len(data) * part // 8] for part in range(1, 8))]:
        damaged.write_bytes(content)
        with pytest.raises(CellLoadError, match=r"damaged.*(no checkpoint|empty|cut off|damaged)"):
            read_tensors(damaged)


@pytest.mark.parametrize("name", ["no\x1b[31mfile", "x" * 300])
def test_a_name_that_no_file_has_is_shown_in_quotes(name: str):
    """With the codes of a terminal, or longer than any disk takes."""
    with pytest.raises(CellLoadError, match=f"'{re.escape(repr(name)[1:-1])}'"):
        read_tensors(name)


# words


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ("lsmt", UnknownNameError, "Did you mean 'lstm'"),
        ("torch.GRU-before", UnknownNameError, "Use gru-before"),
        ("nowhere.pt", CellLoadError, r"there is no file .nowhere\.pt"),
        (nn.LSTM(3, 5, num_layers=2), CellLoadError, "one level, one direction"),
        (nn.GRUCell, CellLoadError, r"the class GRUCell. Hand over .* GRUCell\(...\)"),
        (3, CellLoadError, "got int"),
        (parity_layers.Startless(), CellLoadError, "Let it take one: forward"),
        (parity_steps.failing_rnn, CellLoadError, "out of order today"),
        (parity_steps.returnless_rnn, CellLoadError, "Is a return missing"),
        (lambda x, h: h, CellLoadError, "must take its weights as arguments"),
        (
            {"a": torch.zeros(2, dtype=torch.float64)},
            CellLoadError,
            "one recurrent layer's weights",
        ),
    ],
)
def test_what_is_no_side_is_refused_in_words(asked: object, error: type[Exception], words: str):
    """The message says what a side is, or what is wrong with this one."""
    with pytest.raises(error, match=words):
        read_side(asked, WIDTHS)


def test_a_function_that_fails_later_says_where():
    """The line of the user's own file is named."""
    side = read_side(parity_steps.late_failing_rnn, WIDTHS)
    with pytest.raises(CellCallError, match=r"three rows are too many \(parity_steps\.py:\d+\)"):
        side.run(side.weights, torch.zeros(1, 3, 3).double(), (torch.zeros(3, 5).double(),))


def test_files_of_the_wrong_shape_are_refused():
    """Rows that are no multiple of the width, a recording of two lengths."""
    zeros = torch.zeros
    odd = {"weight_ih": zeros(7, 3).double(), "weight_hh": zeros(7, 2).double()}
    with pytest.raises(ShapeError, match="4 gates"):
        read_side(odd, WIDTHS, name="odd")
    apart = {"x": zeros(4, 2, 3).double(), "y": zeros(5, 2, 3).double()}
    with pytest.raises(ShapeError, match="same steps and rows"):
        read_side(apart, WIDTHS, name="apart")
