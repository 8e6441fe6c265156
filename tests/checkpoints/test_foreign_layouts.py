"""ONNX's and Keras's weights come to torch's names, shapes and order of gates.

The twins compute a step from the other program's own equations and layout.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from gradflow.cells import Cell
from gradflow.checkpoints import FoundLayer, load_layers
from tests.field_cases import field_case

Array = NDArray[np.float64]
INPUTS, HIDDEN, BATCH = 3, 5, 2


def drawn(*shape: int, seed: int = 0) -> Array:
    """Return normal numbers."""
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def sigmoid(values: Array) -> Array:
    """Return 1 / (1 + e^-v)."""
    return 1 / (1 + np.exp(-values))


def step(found: FoundLayer, x: Array, h: Array, c: Array | None = None) -> list[Array]:
    """Return the new state of the found cell."""
    state = [h] if c is None else [h, c]
    tensors = tuple(torch.from_numpy(part) for part in state)
    with torch.no_grad():
        return [part.numpy() for part in found.cell.step(torch.from_numpy(x), tensors).state]


def save(tmp_path: Path, arrays: dict[str, Array]) -> Path:
    """Save arrays by name."""
    np.savez(tmp_path / "weights.npz", **arrays)
    return tmp_path / "weights.npz"


X, H, C = drawn(BATCH, INPUTS), drawn(BATCH, HIDDEN, seed=1), drawn(BATCH, HIDDEN, seed=2)


@pytest.mark.parametrize("start", ["", "encoder.lstm_"])
def test_onnx_lstm(tmp_path: Path, start: str) -> None:
    """Rows are i, o, f, c; B is both bias vectors one after the other; directions come first."""
    W, R = drawn(2, 4 * HIDDEN, INPUTS), drawn(2, 4 * HIDDEN, HIDDEN)
    B = drawn(2, 8 * HIDDEN)
    both = load_layers(save(tmp_path, {f"{start}W": W, f"{start}R": R, f"{start}B": B}))
    assert [each.direction for each in both] == ["forward", "reverse"]
    assert {each.name for each in both} == {start.strip("_") or "lstm"}
    for index, found in enumerate(both):
        sums = X @ W[index].T + H @ R[index].T + B[index].reshape(2, -1).sum(axis=0)
        i, o, f, g = np.split(sums, 4, axis=1)
        c = sigmoid(f) * C + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        np.testing.assert_allclose(step(found, X, H, C), [h, c], rtol=1e-12)
        assert any("ONNX's; their gates were put in torch's order" in n for n in found.notes)


def test_onnx_gru(tmp_path: Path) -> None:
    """Rows are z, r, h; with linear_before_reset the reset gate acts after the product."""
    W, R, B = drawn(1, 3 * HIDDEN, INPUTS), drawn(1, 3 * HIDDEN, HIDDEN), drawn(1, 6 * HIDDEN)
    [found] = load_layers(save(tmp_path, {"W": W, "R": R, "B": B}))
    driven, recurrent = X @ W[0].T + B[0, : 3 * HIDDEN], H @ R[0].T + B[0, 3 * HIDDEN :]
    (wz, wr, wh), (rz, rr, rh) = np.split(driven, 3, axis=1), np.split(recurrent, 3, axis=1)
    z, r = sigmoid(wz + rz), sigmoid(wr + rr)
    h = (1 - z) * np.tanh(wh + r * rh) + z * H
    np.testing.assert_allclose(step(found, X, H), [h], rtol=1e-12)
    assert any("linear_before_reset" in note for note in found.notes)


def test_onnx_rnn_without_bias(tmp_path: Path) -> None:
    """One block of rows and no B."""
    W, R = drawn(1, HIDDEN, INPUTS), drawn(1, HIDDEN, HIDDEN)
    [found] = load_layers(save(tmp_path, {"W": W, "R": R}))
    assert not found.bias
    np.testing.assert_allclose(step(found, X, H), [np.tanh(X @ W[0].T + H @ R[0].T)], rtol=1e-12)


def keras(cell: str, gates: int, *bias: int) -> dict[str, Array]:
    """Return a layer's variables as Keras names and shapes them."""
    names = {"kernel": (INPUTS, gates * HIDDEN), "recurrent_kernel": (HIDDEN, gates * HIDDEN)}
    shapes = names | ({"bias": bias} if bias else {})
    return {f"{cell}/{name}": drawn(*shape) for name, shape in shapes.items()}


def test_keras_lstm(tmp_path: Path) -> None:
    """Kernels stand on their side, (input, rows), in torch's own order i, f, c, o; one bias."""
    stored = keras("lstm/lstm_cell", 4, 4 * HIDDEN)
    [found] = load_layers(save(tmp_path, {f"{name}:0": array for name, array in stored.items()}))
    assert (found.name, found.input_size, found.hidden_size) == ("lstm", INPUTS, HIDDEN)
    K, U, b = stored.values()
    i, f, g, o = np.split(X @ K + H @ U + b, 4, axis=1)
    c = sigmoid(f) * C + sigmoid(i) * np.tanh(g)
    np.testing.assert_allclose(step(found, X, H, C), [sigmoid(o) * np.tanh(c), c], rtol=1e-12)


def test_keras_gru_with_the_reset_after(tmp_path: Path) -> None:
    """Two rows of biases mean reset_after=True; rows are z, r, h."""
    stored = keras("gru", 3, 2, 3 * HIDDEN)
    [found] = load_layers(save(tmp_path, stored))
    K, U, b = stored.values()
    (wz, wr, wh), (uz, ur, uh) = (
        np.split(X @ K + b[0], 3, axis=1),
        np.split(H @ U + b[1], 3, axis=1),
    )
    z, r = sigmoid(wz + uz), sigmoid(wr + ur)
    wanted = z * H + (1 - z) * np.tanh(wh + r * uh)
    np.testing.assert_allclose(step(found, X, H), [wanted], rtol=1e-12)


def test_keras_gru_with_the_reset_before(tmp_path: Path) -> None:
    """One row of biases means reset_after=False: the reset gate multiplies h before the product."""
    stored = keras("gru", 3, 3 * HIDDEN)
    [found] = load_layers(save(tmp_path, stored))
    K, U, b = stored.values()
    wz, wr, wh = np.split(X @ K + b, 3, axis=1)
    Uz, Ur, Uh = np.split(U, 3, axis=1)
    z, r = sigmoid(wz + H @ Uz), sigmoid(wr + H @ Ur)
    wanted = z * H + (1 - z) * np.tanh(wh + (r * H) @ Uh)
    np.testing.assert_allclose(step(found, X, H), [wanted], rtol=1e-12)


def test_keras_bidirectional(tmp_path: Path) -> None:
    """Its two layers are one module of two directions."""
    both = keras("enc/forward_lstm/lstm_cell", 4, 4 * HIDDEN)
    both |= keras("enc/backward_lstm/lstm_cell_1", 4, 4 * HIDDEN)
    found = load_layers(save(tmp_path, both))
    assert [(each.name, each.direction) for each in found] == [
        ("enc", "forward"),
        ("enc", "reverse"),
    ]


def test_other_tensors_of_such_names_are_no_layers(tmp_path: Path) -> None:
    """A dense layer has a kernel and a bias too, and anything may be called R."""
    arrays = {
        "dense/kernel": drawn(3, 4),
        "dense/bias": drawn(4),
        "R": drawn(3, 3),
        "W": drawn(2, 2),
    }
    arrays |= keras("lstm", 4)
    assert [each.name for each in load_layers(save(tmp_path, arrays))] == ["lstm"]


def test_the_field_case_of_a_foreign_order(tmp_path: Path) -> None:
    """Tensors in ONNX's order give the weights that reproduce the recorded output."""
    case = field_case("foreign_gate_order")
    rows = case.weights("onnx_order")
    B = np.concatenate([rows["bias_ih"], rows["bias_hh"]])
    onnx = {"W": rows["weight_ih"][None], "R": rows["weight_hh"][None], "B": B[None]}
    [found] = load_layers(save(tmp_path, onnx))
    x, y = (torch.from_numpy(case.arrays[name]) for name in ("x", "y"))
    assert isinstance(found.cell, Cell)
    with torch.no_grad():
        h = found.cell.run(found.cell.drive(x), found.cell.initial_state(x.shape[1]))[0]
    assert largest(h[1:] - y) < 1e-12


def largest(tensor: Tensor) -> float:
    """Return the largest number by size."""
    return float(tensor.abs().max())
