"""Step functions as people write them: right ones in many notations, and wrong by one slip."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

# ---- step functions, right


def sigmoid(v: Any) -> Any:
    """Return the sigmoid of an array."""
    return 1 / (1 + np.exp(-v))


def textbook_lstm(x, h, c, W_i, W_f, W_o, W_c, b_i, b_f, b_o, b_c):
    """NumPy, one weight per gate on [x, h], one bias; shows its gates."""
    v = np.concatenate([x, h], axis=1)
    i, f, o = (sigmoid(v @ w.T + b) for w, b in ((W_i, b_i), (W_f, b_f), (W_o, b_o)))
    g = np.tanh(v @ W_c.T + b_c)
    new_c = f * c + i * g
    return {"h": o * np.tanh(new_c), "c": new_c, "i": i, "f": f, "o": o, "g": g}


def course_lstm(xt, a_prev, c_prev, parameters):
    """NumPy in columns, weights in a dict on [h, x], an output layer, and a cache at the end."""
    v = np.concatenate((a_prev, xt), axis=0)
    f = sigmoid(parameters["Wf"] @ v + parameters["bf"])
    i = sigmoid(parameters["Wi"] @ v + parameters["bi"])
    candidate = np.tanh(parameters["Wc"] @ v + parameters["bc"])
    o = sigmoid(parameters["Wo"] @ v + parameters["bo"])
    c = f * c_prev + i * candidate
    a = o * np.tanh(c)
    y = parameters["Wy"] @ a + parameters["by"]
    return a, c, y, (a, c, f)


def vector_rnn(x, h, W, U, b):
    """NumPy, one sample at a time."""
    assert x.ndim == 1
    return np.tanh(W @ x + U @ h + b)


def d2l_gru(X, H, W_xz, W_hz, b_z, W_xr, W_hr, b_r, W_xh, W_hh, b_h):
    """Torch, weights from the right; the candidate is called h, and the reset acts before."""
    z = torch.sigmoid(X @ W_xz + H @ W_hz + b_z)
    r = torch.sigmoid(X @ W_xr + H @ W_hr + b_r)
    candidate = torch.tanh(X @ W_xh + (r * H) @ W_hh + b_h)
    return z * H + (1 - z) * candidate


def docs_gru(x, h, W_ir, W_iz, W_in, W_hr, W_hz, W_hn, b_ir, b_iz, b_in, b_hr, b_hz, b_hn):
    """The equations of torch's documentation, letter by letter."""
    r = torch.sigmoid(x @ W_ir.T + b_ir + h @ W_hr.T + b_hr)
    z = torch.sigmoid(x @ W_iz.T + b_iz + h @ W_hz.T + b_hz)
    n = torch.tanh(x @ W_in.T + b_in + r * (h @ W_hn.T + b_hn))
    return (1 - z) * n + z * h


def four_bias_gru(x, h, W_r, W_z, W_n, U_r, U_z, U_n, b_r, b_z, b_in, b_hn):
    """One bias per gate, but two for the candidate: what torch really needs."""
    r = torch.sigmoid(x @ W_r.T + h @ U_r.T + b_r)
    z = torch.sigmoid(x @ W_z.T + h @ U_z.T + b_z)
    n = torch.tanh(x @ W_n.T + b_in + r * (h @ U_n.T + b_hn))
    return z * h + (1 - z) * n


def state_tuple_lstm(x, state, W, b):
    """All gates in one weight on [x, h]; the state is a tuple, and the answer is nested."""
    h, c = state
    i, f, g, o = (torch.cat([x, h], 1) @ W + b).chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    return h, (h, c)


def colah_gru(x, h, W_z, W_r, W, b_z, b_r, b):
    """The candidate's weight has no letter; z writes, and the reset acts before."""
    v = torch.cat([h, x], 1)
    z, r = torch.sigmoid(v @ W_z.T + b_z), torch.sigmoid(v @ W_r.T + b_r)
    candidate = torch.tanh(torch.cat([r * h, x], 1) @ W.T + b)
    return (1 - z) * h + z * candidate


def numbered_lstm(x, h, c, W1, W2, W3, W4, b1, b2, b3, b4):
    """No name tells a gate; the order is torch's."""
    v = torch.cat([x, h], 1)
    i, f, o = (torch.sigmoid(v @ w.T + b) for w, b in ((W1, b1), (W2, b2), (W4, b4)))
    c = f * c + i * torch.tanh(v @ W3.T + b3)
    return o * torch.tanh(c), c


# ---- step functions with habits and slips


def stacked_ifog(x, prev_h, prev_c, Wx, Wh, b):
    """Stacked in the order i, f, o, g."""
    i, f, o, g = (x @ Wx + prev_h @ Wh + b).chunk(4, 1)
    c = torch.sigmoid(f) * prev_c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c, (x, prev_h)


def writing_gru(x, h, W_r, W_z, W_n, U_r, U_z, U_n, b_r, b_z, b_in, b_hn):
    """Z writes."""
    r = torch.sigmoid(x @ W_r.T + h @ U_r.T + b_r)
    z = torch.sigmoid(x @ W_z.T + h @ U_z.T + b_z)
    n = torch.tanh(x @ W_n.T + b_in + r * (h @ U_n.T + b_hn))
    return (1 - z) * h + z * n


def overwriting_rnn(x, h, W, U, b):
    """Writes the new state over the old one."""
    h[:] = np.tanh(x @ W + h @ U + b)
    return h


def printing_rnn(x, h, W, U, b):
    """Prints."""
    print("a step of", x.shape)  # noqa: T201
    return np.tanh(x @ W + h @ U + b)


def single_rnn(x, h, W, U, b):
    """Computes a part in float32."""
    return torch.tanh((x.float() @ W.float()).double() + h @ U + b)


def failing_rnn(x, h, W, U, b):
    """Always fails."""
    raise RuntimeError("out of order today")


def late_failing_rnn(x, h, W, U, b):
    """Fails on three rows, not on others."""
    if len(x) == 3:
        raise ZeroDivisionError("three rows are too many")
    return np.tanh(x @ W + h @ U + b)


def returnless_rnn(x, h, W, U, b):
    """Forgets to return."""
    np.tanh(x @ W + h @ U + b)


def wrong_gate_shown(x, h, c, weight_ih, weight_hh, bias_ih, bias_hh):
    """The state is right; what is shown as i is f."""
    i, f, g, o = (x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh).chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    return {"h": h, "c": c, "i": torch.sigmoid(f), "f": torch.sigmoid(f)}


# ---- weight maps


def map_of_writing_gru(a: dict[str, Any]) -> dict[str, Any]:
    """Return the weights of `writing_gru` that make it torch's GRU: z's negated."""
    r, z, n = slice(0, 5), slice(5, 10), slice(10, 15)
    w, u, bias = a["weight_ih"], a["weight_hh"], a["bias_ih"] + a["bias_hh"]
    return {
        "W_r": w[r], "W_z": -w[z], "W_n": w[n], "U_r": u[r], "U_z": -u[z], "U_n": u[n],
        "b_r": bias[r], "b_z": -bias[z], "b_in": a["bias_ih"][n], "b_hn": a["bias_hh"][n],
    }  # fmt: skip


def numpy_map_of_writing_gru(a: dict[str, Any]) -> dict[str, Any]:
    """Return the same, out of torch's sight."""
    return {name: value.detach().numpy() for name, value in map_of_writing_gru(a).items()}


def misnamed_map(a: dict[str, Any]) -> dict[str, Any]:
    """Name a weight that the cell has not."""
    return {"W_q": a["weight_ih"]}
