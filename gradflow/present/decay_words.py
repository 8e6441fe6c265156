"""What the table and the figure of a decay say in words: names, quantities, findings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradflow.present.cell_titles import CELL_TITLES, cell_title, short_names
from gradflow.present.numbers import number_text
from gradflow.records import DecayCurve, DecayResult
from gradflow.records.base import FloatArray

_GATE_SYMBOLS = {"forget": "f", "update": "z"}
MOST_GAINS = 4  # candidate gains that are drawn side by side
ROUND_OFF = {"float64": 1e-12, "float32": 1e-6}  # nats per step: smaller slopes are rounding
ON_TREND = 1e-3  # nats per step: the factor per step reads the same to three digits


@dataclass(frozen=True)
class Panel:
    """The curves of one cell and candidate gain; `gain` is None where the cell has no keep gate.

    `full` are the measured curves, `others` the other paths, such as the direct one; `name` is the
    cell's in short.
    """

    cell: str
    name: str
    gain: float | None
    full: tuple[DecayCurve, ...]
    others: tuple[DecayCurve, ...]

    @property
    def title(self) -> str:
        """The cell, and its candidate gain where there is one."""
        if self.gain is not None:
            return f"{cell_title(self.name)}, candidate gain {self.gain:g}"
        recurrent = any(curve.candidate_gain is not None for curve in self.full)
        return cell_title(self.name) + (", recurrent gain g" if recurrent else "")

    @property
    def quantity(self) -> str:
        """What its y axis measures, as mathtext."""
        return quantity((*self.full, *self.others)[0])


def panels_of(result: DecayResult) -> tuple[Panel, ...]:
    """Return the curves by cell and candidate gain, in the order in which they were measured."""
    groups: dict[tuple[str, float | None], list[DecayCurve]] = {}
    for curve in result.curves:
        gain = None if curve.gate_value is None else curve.candidate_gain
        groups.setdefault((curve.cell, gain), []).append(curve)
    names = short_names({curve.cell: None for curve in result.curves})
    return tuple(
        Panel(
            cell=cell,
            name=names[cell],
            gain=gain,
            full=tuple(curve for curve in curves if curve.path == "full"),
            others=tuple(curve for curve in curves if curve.path != "full"),
        )
        for (cell, gain), curves in groups.items()
    )


def shown_panels(result: DecayResult) -> tuple[Panel, ...]:
    """Return the panels to draw: of many candidate gains the least and the one nearest to 1."""
    panels = panels_of(result)
    gains = sorted({panel.gain for panel in panels if panel.gain is not None})
    if len(gains) <= MOST_GAINS:
        return panels
    live = min(gains[1:], key=lambda gain: abs(gain - 1.0))
    kept = (None, gains[0], live)
    return tuple(panel for panel in panels if panel.gain in kept)


def round_off(result: DecayResult) -> float:
    """Return the departure in nats per step below which two slopes are equal in the run's dtype."""
    return ROUND_OFF.get(str(result.config.get("dtype", "float64")), 0.0)


def curve_value(curve: DecayCurve) -> float | None:
    """Return what tells the curves of a panel apart: the gate value, or the recurrent gain."""
    return curve.candidate_gain if curve.gate_value is None else curve.gate_value


def curve_symbol(curve: DecayCurve) -> str:
    """Return the symbol of that value: f, z, g, or the gate's own name."""
    if curve.gate_value is None:
        return "g"
    return _GATE_SYMBOLS.get(curve.gate_name or "", curve.gate_name or "gate")


def curve_name(curve: DecayCurve) -> str:
    """Return "f=0.9", "g=1.1", or "measured" for a cell without either."""
    value = curve_value(curve)
    return "measured" if value is None else f"{curve_symbol(curve)}={value:g}"


def reference_log10(curve: DecayCurve) -> FloatArray | None:
    """Return the line a curve is drawn against: T log10 of the gate, or of the recurrent gain.

    g^T is exact for a plain RNN at h = 0 with W = g Q, and bounds it elsewhere.
    """
    if curve.trend_log10 is not None:
        return curve.trend_log10
    gain = curve.candidate_gain
    if curve.gate_value is not None or gain is None or gain <= 0:
        return None
    return np.asarray(curve.steps * math.log10(gain), dtype=np.float64)


def quantity(curve: DecayCurve) -> str:
    """Return the quantity as mathtext, such as the norm of dc_T/dc_0."""
    state = "s" if curve.state == "joint" else curve.state
    letter = state if len(state) == 1 else rf"\mathrm{{{_identifier(state)}}}"
    norm = "2" if curve.norm == "spectral" else "F"
    return rf"$\|\partial {letter}_T\,/\,\partial {letter}_0\|_{norm}$"


def plain_quantity(curve: DecayCurve) -> str:
    """Return the quantity as plain text, such as ||dc_T/dc_0||_2."""
    state = "s" if curve.state == "joint" else curve.state
    return f"||d{state}_T/d{state}_0||_{'2' if curve.norm == 'spectral' else 'F'}"


def conditions(result: DecayResult) -> str:
    """Return the settings that the numbers depend on, as one line.

    A user's own cell may choose its width, and what declares no gates has none that are held.
    """
    config = result.config
    cells = {curve.cell for curve in result.curves}
    built_in = cells & set(CELL_TITLES)
    own = {curve.cell for curve in result.curves if curve.gate_value is not None} - built_in
    names = ["input_gate", "output_gate"] if own or "lstm" in cells else []
    names += ["reset_gate"] if own or "gru" in cells else []
    facts = [f"hidden {config['hidden']}"] if "hidden" in config and built_in else []
    facts += [f"{config['start']} start"] if "start" in config else []
    facts += [f"{name.replace('_', ' ')} {config[name]}" for name in names if name in config]
    facts += [str(config["dtype"])] if "dtype" in config else []
    return ", ".join(["zero input", *facts])


def caption_of(result: DecayResult) -> str:
    """Return what the figure shows: where the trend is the truth, and where it is not."""
    panels = shown_panels(result)
    left = len(panels_of(result)) - len(panels)
    on = [panel for panel in panels if _follows(panel)]
    off = [panel for panel in panels if _departing(panel) and panel not in on]
    sentences = [_agreement_sentence(on)] if on else []
    if off:
        findings = "; ".join(_departure_clause(panel) for panel in off)
        sentences.append(f"The trend is not the truth: {findings}.")
    if left:
        sentences.append(f"{left} panels of other candidate gains are left out; the table has all.")
    if any(curve.first_zero_step is not None for panel in panels for curve in panel.full):
        sentences.append("Triangles at the floor: zero, which no logarithm can show.")
    return " ".join(sentences)


def alt_of(result: DecayResult) -> str:
    """Return the alt text: the kind of chart, the quantity, and each panel's finding in numbers."""
    panels = shown_panels(result)
    curve = result.curves[0] if result.curves else None
    what = "" if curve is None else f" of {plain_quantity(curve)} over T on a log axis"
    findings = " ".join(_panel_sentence(panel) for panel in panels)
    return f"Line chart{what}, {len(panels)} panels. {findings}".strip()


def _follows(panel: Panel) -> bool:
    departures = _departing(panel)
    return bool(departures) and all(abs(curve.departure or 0.0) <= ON_TREND for curve in departures)


def _departing(panel: Panel) -> list[DecayCurve]:
    return [curve for curve in panel.full if curve.departure is not None]


def _agreement_sentence(panels: Sequence[Panel]) -> str:
    largest = max(abs(curve.departure or 0.0) for panel in panels for curve in _departing(panel))
    how_well = f"within {largest:.0e} nats per step" if largest else "exactly"
    where = "; ".join(panel.title for panel in panels)
    return f"Measured and trend agree {how_well}: {where}."


def _departure_clause(panel: Panel) -> str:
    worst = max(_departing(panel), key=lambda curve: abs(curve.departure or 0.0))
    kept = number_text(worst.factor_per_step, 3)
    value = number_text(curve_value(worst), 3)
    return f"{panel.title}: {curve_name(worst)} keeps {kept} a step, not {value}"


def _panel_sentence(panel: Panel) -> str:
    parts = [f"{curve_name(curve)} {_kept(curve)}" for curve in panel.full if curve.steps.size]
    return f"{panel.title}: {', '.join(parts)}."


def _kept(curve: DecayCurve) -> str:
    if curve.first_zero_step is not None:
        return f"is zero from T={curve.first_zero_step}"
    if curve.factor_per_step is None:
        return f"is 10^{number_text(float(curve.log10_norm[-1]), 3)} at T={curve.steps[-1]}"
    return f"keeps {number_text(curve.factor_per_step, 3)} a step"


def _identifier(text: str) -> str:
    return "".join(letter if letter.isalnum() else r"\ " for letter in text)
