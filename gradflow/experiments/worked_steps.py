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
    shown = f"{_text(f)} * {_text(c)} + {_text(i)} * {_text(g)}"
    new_h = o * math.tanh(c_new)
    return WorkedStep(
        step=number,
        gates={"input": i, "forget": f, "output": o},
        candidate=g,
        before={"c": c},
        after={"h": new_h, "c": c_new},
        equations=(
            Equation(f"c_{t}", f"f_{t} * c_{p} + i_{t} * g_{t}", shown, c_new),
            Equation(f"h_{t}", f"o_{t} * tanh(c_{t})", f"{_text(o)} * tanh({c_new:.6g})", new_h),
        ),
        direct=f,
        left_out=_left_out_of_lstm(number, c, f=f, i=i, g=g),
    )


def _left_out_of_lstm(
    t: int, c: float, *, f: float, i: float, g: float
) -> tuple[Equation, Equation, Equation]:
    """Return d c_t by the pre-activation of the forget gate, the input gate and the candidate."""
    c_text, f_text, i_text, g_text = map(_text, (c, f, i, g))
    return (
        Equation(
            "through the forget gate",
            f"c_{t - 1} * f_{t} * (1 - f_{t})",
            f"{c_text} * {f_text} * (1 - {f_text})",
            c * f * (1 - f),
        ),
        Equation(
            "through the input gate",
            f"g_{t} * i_{t} * (1 - i_{t})",
            f"{g_text} * {i_text} * (1 - {i_text})",
            g * i * (1 - i),
        ),
        Equation(
            "through the candidate",
            f"i_{t} * (1 - g_{t}^2)",
            f"{i_text} * (1 - {g_text}^2)",
            i * (1 - g**2),
        ),
    )


def gru_step(number: int, h: float, *, z: float, n: float, z_keeps: bool) -> WorkedStep:
    """Work one GRU step of one unit from h_{t-1}, the update gate z and the candidate n.

    Left out, per unit of pre-activation: (h - n) z (1 - z), negative where z writes, and
    (1 - z) (1 - n^2), or z (1 - n^2) where z writes.
    """
    t, p = number, number - 1
    kept, written = (z, 1 - z) if z_keeps else (1 - z, z)
    keeps, writes = _shares_of_gru(t, z, z_keeps=z_keeps)
    h_new = kept * h + written * n
    equation = Equation(
        f"h_{t}",
        f"{keeps[0]} * h_{p} + {writes[0]} * n_{t}",
        f"{keeps[1]} * {_text(h)} + {writes[1]} * {_text(n)}",
        h_new,
    )
    candidate = Equation(
        "through the candidate",
        f"{writes[0]} * (1 - n_{t}^2)",
        f"{writes[1]} * (1 - {_text(n)}^2)",
        written * (1 - n**2),
    )
    return WorkedStep(
        step=number,
        gates={"update": z},
        candidate=n,
        before={"h": h},
        after={"h": h_new},
        equations=(equation,),
        direct=kept,
        left_out=(_through_update_gate(t, h, z=z, n=n, z_keeps=z_keeps), candidate),
    )


def _shares_of_gru(t: int, z: float, *, z_keeps: bool) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return what keeps and what writes, each in symbols and in numbers."""
    own, rest = (f"z_{t}", _text(z)), (f"(1 - z_{t})", f"(1 - {_text(z)})")
    return (own, rest) if z_keeps else (rest, own)


def _through_update_gate(t: int, h: float, *, z: float, n: float, z_keeps: bool) -> Equation:
    """Return d h_t by the pre-activation of the update gate."""
    old, new = (f"h_{t - 1}", _text(h), h), (f"n_{t}", _text(n), n)
    first, second = (old, new) if z_keeps else (new, old)
    return Equation(
        "through the update gate",
        f"({first[0]} - {second[0]}) * z_{t} * (1 - z_{t})",
        f"({first[1]} - {second[1]}) * {_text(z)} * (1 - {_text(z)})",
        (first[2] - second[2]) * z * (1 - z),
    )


def _text(value: float) -> str:
    """Return a number as an equation shows it; a negative one in brackets."""
    shown = f"{value:.6g}"
    return f"({shown})" if shown.startswith("-") else shown
