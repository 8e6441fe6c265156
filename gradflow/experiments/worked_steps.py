"""The equations of a single step with their numbers put in: one function per cell."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gradflow.records.step import Equation, WorkedStep


def lstm_step(number: int, c: float, values: Mapping[str, float]) -> WorkedStep:
    """Work one LSTM step of one unit from c_{t-1} and the gates' values.

    Left out, per unit of pre-activation: c f (1 - f), g i (1 - i) and i (1 - g^2). The output
    gate is not among them: it shows c_t and does not make it.
    """
    f, i, o = values["forget_gate"], values["input_gate"], values["output_gate"]
    g = values["candidate"]
    c_new = f * c + i * g
    t, p = number, number - 1
    equations = (
        Equation(
            f"c_{t}",
            f"f_{t} * c_{p} + i_{t} * g_{t}",
            f"{_text(f)} * {_text(c)} + {_text(i)} * {_text(g)}",
            c_new,
        ),
        Equation(
            f"h_{t}",
            f"o_{t} * tanh(c_{t})",
            f"{_text(o)} * tanh({c_new:.6g})",
            o * math.tanh(c_new),
        ),
    )
    left_out = (
        Equation(
            "through the forget gate",
            f"c_{p} * f_{t} * (1 - f_{t})",
            f"{_text(c)} * {_text(f)} * (1 - {_text(f)})",
            c * f * (1 - f),
        ),
        Equation(
            "through the input gate",
            f"g_{t} * i_{t} * (1 - i_{t})",
            f"{_text(g)} * {_text(i)} * (1 - {_text(i)})",
            g * i * (1 - i),
        ),
        Equation(
            "through the candidate",
            f"i_{t} * (1 - g_{t}^2)",
            f"{_text(i)} * (1 - {_text(g)}^2)",
            i * (1 - g**2),
        ),
    )
    return WorkedStep(
        step=number,
        gates={"input": i, "forget": f, "output": o},
        candidate=g,
        before={"c": c},
        after={"h": equations[1].value, "c": c_new},
        equations=equations,
        direct=f,
        left_out=left_out,
    )


def gru_step(number: int, h: float, *, z: float, n: float, z_keeps: bool) -> WorkedStep:
    """Work one GRU step of one unit from h_{t-1}, the update gate z and the candidate n.

    Left out, per unit of pre-activation: (h - n) z (1 - z), negative where z writes, and
    (1 - z) (1 - n^2), or z (1 - n^2) where z writes.
    """
    t, p = number, number - 1
    z_text, n_text, h_text = _text(z), _text(n), _text(h)
    kept, written = (z, 1 - z) if z_keeps else (1 - z, z)
    own, rest = (f"z_{t}", z_text), (f"(1 - z_{t})", f"(1 - {z_text})")
    keeps, writes = (own, rest) if z_keeps else (rest, own)
    first, second = ((f"h_{p}", h_text), (f"n_{t}", n_text))[:: 1 if z_keeps else -1]
    h_new = kept * h + written * n
    equation = Equation(
        f"h_{t}",
        f"{keeps[0]} * h_{p} + {writes[0]} * n_{t}",
        f"{keeps[1]} * {h_text} + {writes[1]} * {n_text}",
        h_new,
    )
    left_out = (
        Equation(
            "through the update gate",
            f"({first[0]} - {second[0]}) * z_{t} * (1 - z_{t})",
            f"({first[1]} - {second[1]}) * {z_text} * (1 - {z_text})",
            (h - n if z_keeps else n - h) * z * (1 - z),
        ),
        Equation(
            "through the candidate",
            f"{writes[0]} * (1 - n_{t}^2)",
            f"{writes[1]} * (1 - {n_text}^2)",
            written * (1 - n**2),
        ),
    )
    return WorkedStep(
        step=number,
        gates={"update": z},
        candidate=n,
        before={"h": h},
        after={"h": h_new},
        equations=(equation,),
        direct=kept,
        left_out=left_out,
    )


def _text(value: float) -> str:
    """Return a number as an equation shows it; a negative one in brackets."""
    shown = f"{value:.6g}"
    return f"({shown})" if shown.startswith("-") else shown
