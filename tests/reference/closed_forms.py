"""Closed forms: what the norms must be, as formulas, where a formula exists.

Every function says in a sentence where its formula comes from. Logarithms are natural, `steps`
is T (a whole number or an array of them), and a norm is "spectral" or "frobenius".
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Steps = int | NDArray[np.int64]


def lstm_from_gates(
    cell_state: float, *, forget: float, write: float, candidate: float, output: float
) -> tuple[float, float]:
    """Return (h', c') of one LSTM unit: ``c' = f c + i g`` and ``h' = o tanh c'``."""
    after = forget * cell_state + write * candidate
    return output * math.tanh(after), after


def gru_from_gates(hidden: float, *, update: float, candidate: float) -> float:
    """Return h' of one GRU unit: ``h' = z h + (1 - z) n``, torch's convention of z."""
    return update * hidden + (1 - update) * candidate


def half_life(keep: float) -> float:
    """Return the steps after which ``keep**T`` is one half: ``-ln 2 / ln keep``."""
    return -math.log(2) / math.log(keep)


def held_log_norm(keep: float, steps: Steps, *, size: int, norm: str = "spectral") -> Array:
    """Return ln of the norm of dc_T/dc_0 (LSTM) or dh_T/dh_0 (GRU) with constant gates, U = 0.

    With no dependence of gates or candidate on the state each step multiplies by ``keep * I``,
    so the product is ``keep**T * I``: spectral ``T ln keep``, Frobenius plus ``ln(size) / 2``.
    """
    whole = 0.0 if norm == "spectral" else math.log(size) / 2
    return np.asarray(steps, dtype=np.float64) * math.log(keep) + whole


def held_cell_state(
    start: Array, steps: Steps, *, forget: float, write: float, candidate: float = 0.0
) -> Array:
    """Return c_T of an LSTM with constant gates and a constant candidate.

    ``c_T = f^T c_0 + i g (1 - f^T) / (1 - f)``: the geometric sum of ``c' = f c + i g``.
    `steps` broadcasts against `start`.
    """
    kept = forget ** np.asarray(steps, dtype=np.float64)
    after: Array = kept * start + write * candidate * (1 - kept) / (1 - forget)
    return after


def held_joint_log_norm(
    forget: float, steps: Steps, *, output: float, cell_state: Array, norm: str = "spectral"
) -> Array:
    """Return ln of the norm of the joint ds_T/ds_0 of an LSTM with constant gates, U = 0.

    Nothing depends on h_0; ``dc_T/dc_0 = f^T I`` and ``dh_T/dc_0 = o diag(sech^2 c_T) f^T``, so
    the columns of the joint Jacobian are orthogonal, of length ``f^T sqrt(1 + o^2 sech^4 c_T,j)``:
    the longest is the spectral norm, all of them together make the Frobenius norm.

    `cell_state` is c_T, (..., hidden), its leading axes matching `steps`.
    """
    length_squared = 1 + output**2 / np.cosh(cell_state) ** 4
    if norm == "spectral":
        beside = np.log(length_squared.max(axis=-1))
    else:
        beside = np.log(length_squared.sum(axis=-1))
    return np.asarray(steps, dtype=np.float64) * math.log(forget) + np.asarray(beside) / 2


def lstm_live_matrix(recurrent: Array, *, forget: float, write: float, output: float) -> Array:
    """Return ``M = f I + i o U``, one step of dc for an LSTM at the zero state.

    There ``h = o tanh c`` and ``tanh' = 1``, so ``dc' = f dc + i U dh`` with ``dh = o dc``.
    """
    return forget * np.eye(len(recurrent)) + write * output * recurrent


def lstm_live_factors(
    recurrent: Array, *, forget: float, write: float, output: float
) -> tuple[Array, Array]:
    """Return (left, right) with joint ds_T/ds_0 = left @ M^(T-1) @ right at the zero state.

    One step is ``[o I; I] [i U, f I]`` (first dc' from (dh, dc), then dh' = o dc'), and the two
    inner factors of neighbouring steps meet as ``[i U, f I] [o I; I] = M``.
    """
    identity = np.eye(len(recurrent))
    left = np.vstack([output * identity, identity])
    right = np.hstack([write * recurrent, forget * identity])
    return left, right


def gru_live_matrix(recurrent: Array, *, update: float, reset: float) -> Array:
    """Return ``z I + (1 - z) r U``, one step of a GRU at h = 0 with zero candidate bias.

    At h = 0 the candidate is 0 and ``tanh' = 1``; a constant reset gate passes r times its
    input, whether before or after the product with U, so both places give the same matrix.
    """
    return update * np.eye(len(recurrent)) + (1 - update) * reset * recurrent


def live_log_norm(
    matrix: Array,
    steps: int,
    *,
    left: Array | None = None,
    right: Array | None = None,
    norm: str = "spectral",
) -> float:
    """Return ln ||left @ matrix**steps @ right|| for any matrix, in log scale.

    By repeated squaring; every square is divided by its largest entry and the logarithm of
    that entry is carried along, so no power under- or overflows.
    """
    power, log_scale = scaled_power(matrix, steps)
    if left is not None:
        power = left @ power
    if right is not None:
        power = power @ right
    size = np.linalg.norm(power, 2 if norm == "spectral" else "fro")
    return log_scale + math.log(size) if size > 0 else -math.inf


def scaled_power(matrix: Array, steps: int) -> tuple[Array, float]:
    """Return (A, s) with ``matrix**steps = A * e^s`` and the largest entry of A near 1."""
    power, log_scale = np.eye(len(matrix)), 0.0
    square, log_square = matrix, 0.0
    while steps:
        if steps % 2:
            power, log_scale = _scaled(power @ square, log_scale + log_square)
        square, log_square = _scaled(square @ square, 2 * log_square)
        steps //= 2
    return power, log_scale


def _scaled(matrix: Array, log_scale: float) -> tuple[Array, float]:
    """Move the size of a matrix into its log scale; a zero matrix stays as it is."""
    largest = float(np.abs(matrix).max())
    if largest == 0.0:
        return matrix, log_scale
    return matrix / largest, log_scale + math.log(largest)


def normal_power_log_norm(matrix: Array, steps: Steps, *, norm: str = "spectral") -> Array:
    """Return ln ||matrix**T|| for a normal matrix, from its eigenvalues alone.

    ``a I + b Q`` with Q orthogonal is normal: its singular values are the moduli of its
    eigenvalues, so ``||M^T||_2 = rho(M)^T`` and ``||M^T||_F^2 = sum |mu_k|^(2T)``.
    """
    logs = np.log(np.abs(np.linalg.eigvals(matrix)))
    times = np.asarray(steps)
    spectral: Array = times * logs.max()
    if norm == "spectral":
        return spectral
    excess = np.exp(2 * np.multiply.outer(times, logs - logs.max()))
    frobenius: Array = spectral + np.log(excess.sum(axis=-1)) / 2
    return frobenius


def log_spectral_radius(matrix: Array) -> float:
    """Return ln of the largest modulus of an eigenvalue: the rate of a power in nats per step.

    Gelfand's formula: ``||M^T||^(1/T)`` tends to the spectral radius.
    """
    return math.log(np.abs(np.linalg.eigvals(matrix)).max())


def rnn_log_norm(gain: float, steps: Steps, *, size: int, norm: str = "spectral") -> Array:
    """Return ln of the norm of dh_T/dh_0 for a tanh RNN with W = gain * Q at h = 0.

    At h = 0 with zero input and bias the state stays there and ``tanh' = 1``, so the product
    is ``(gain Q)^T``, gain^T times an orthogonal matrix: the same norms as ``gain^T I``.
    """
    return held_log_norm(gain, steps, size=size, norm=norm)
