"""The drawing of `gradflow step`: the conveyor belt of the kept state, with the gates' values.

One panel a step. The belt is as wide as the number that it carries; gauges beside it show how much
each gate lets through.
"""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gradflow.present.belt import GAUGE_HEIGHT, Drawing, Gauge
from gradflow.present.cell_titles import cell_title
from gradflow.present.layout import Grid, Words, make_sheet
from gradflow.present.numbers import number_text
from gradflow.present.theme import Theme, describe, theme_context
from gradflow.records.step import StepResult, WorkedStep

MOST_STEPS = 8  # drawn; a longer run is in the table
_HEIGHT = 19.0  # em, of a panel
_BELT, _PRODUCT, _FOOT = 14.2, 10.2, 3.4  # em: the belt, the products below it, the gauges' feet
_LABEL_ROOM = 0.175  # of the panel's width, for the label of a gauge
TIMES = "\N{MULTIPLICATION SIGN}"


def step_figure(result: StepResult, *, style: str = "screen") -> Figure:
    """Return the cell as a drawing: what each step keeps, writes and (LSTM) shows.

    Args:
        result: steps of an LSTM or a GRU; the first eight are drawn.
        style: "screen" or "paper".
    """
    steps = result.steps[:MOST_STEPS]
    largest = max((_size(step) for step in steps), default=1.0) or 1.0
    with theme_context(style) as theme:
        columns = min(len(steps), theme.most_columns)
        grid = Grid(
            rows=math.ceil(len(steps) / columns),
            columns=columns,
            tick_room=1.0,
            axis_room=0.4,
            height=_HEIGHT * theme.em,
        )
        sheet = make_sheet(theme, grid, Words(_title(result), "", _caption(result)))
        places = [ax for row in sheet.axes for ax in row]
        for step, ax in zip(steps, places, strict=False):
            _draw_step(ax, result, step, theme=theme, largest=largest)
        for ax in places[len(steps) :]:
            ax.set(xticks=[], yticks=[])
            ax.set_axis_off()
        return describe(sheet.figure, alt_of(result))


def kept_and_written(result: StepResult, step: WorkedStep) -> tuple[float, float]:
    """Return what a step keeps of the old state, and what it writes."""
    (before,) = step.before.values()
    write = step.gates["input"] if result.cell == "lstm" else 1.0 - step.direct
    return step.direct * before, write * step.candidate


def alt_of(result: StepResult) -> str:
    """Return the alt text: every step's numbers, in the order in which they flow."""
    sentences = []
    for step in result.steps[:MOST_STEPS]:
        kept, written = kept_and_written(result, step)
        ((part, before),) = step.before.items()
        parts = sorted(step.after, key=lambda name: name != part)  # the kept part first
        after = ", ".join(f"{name}={number_text(step.after[name])}" for name in parts)
        sentences.append(
            f"Step {step.step}: of {number_text(before)} the belt keeps {number_text(kept)} "
            f"(gate {number_text(step.direct)}); {number_text(written)} is written; {after}."
        )
    return " ".join([f"{cell_title(result.cell)} cell as a conveyor belt.", *sentences])


def _draw_step(
    ax: Axes, result: StepResult, step: WorkedStep, *, theme: Theme, largest: float
) -> None:
    """Draw one step into a panel."""
    ax.set_title(f"step {step.step}", fontsize=theme.font)
    drawing = Drawing(ax, theme, largest=largest)
    gauges = _gauges(result, step, drawing.width)
    keep_x, join_x = gauges[0].x, (gauges[1].x + gauges[2].x) / 2
    _draw_belt(drawing, result, step, at=(keep_x, join_x))
    top = _FOOT + GAUGE_HEIGHT
    drawing.pipe((keep_x, top), (keep_x, _BELT))
    for gauge in gauges[1:3]:
        drawing.pipe((gauge.x, top), (join_x, _PRODUCT))
    written = number_text(kept_and_written(result, step)[1], 3)
    drawing.pipe((join_x, _PRODUCT), (join_x, _BELT), label=f"written {written}")
    if result.cell == "lstm":
        _draw_readout(drawing, step, x=0.91 * drawing.width, gate_x=gauges[3].x)
    drawing.node(keep_x, _BELT, TIMES)
    drawing.node(join_x, _BELT, "+")
    drawing.node(join_x, _PRODUCT, TIMES)
    for gauge in gauges:
        drawing.gauge(gauge, foot=_FOOT, room=_LABEL_ROOM * drawing.width)


def _draw_belt(
    drawing: Drawing, result: StepResult, step: WorkedStep, *, at: tuple[float, float]
) -> None:
    """Draw the kept state: as it comes, after the keep gate, and as it leaves."""
    part = next(iter(step.before))
    kept, _ = kept_and_written(result, step)
    before, after = step.before[part], step.after[part]
    texts = [
        f"{part}_{step.step - 1} = {number_text(before, 3)}",
        f"kept {number_text(kept, 3)}",
        f"{part}_{step.step} = {number_text(after, 3)}",
    ]
    drawing.belt((0.0, at[0]), _BELT, before, texts[0])
    drawing.belt(at, _BELT, kept, texts[1])
    drawing.belt((at[1], drawing.width), _BELT, after, texts[2], last=True)


def _draw_readout(drawing: Drawing, step: WorkedStep, *, x: float, gate_x: float) -> None:
    """Draw how an LSTM shows its state: tanh of the belt, times the output gate."""
    drawing.pipe((x, _BELT), (x, _PRODUCT))
    drawing.pipe((gate_x, _FOOT + GAUGE_HEIGHT), (x, _PRODUCT))
    drawing.pipe((x, _PRODUCT), (x, _FOOT - 0.2))
    drawing.node(x, (_BELT + _PRODUCT) / 2, "tanh")
    drawing.node(x, _PRODUCT, TIMES)
    text = f"shown\nh_{step.step} = {number_text(step.after['h'], 3)}"
    drawing.label((x, _FOOT - 0.5), text, room=_LABEL_ROOM * drawing.width)


def _gauges(result: StepResult, step: WorkedStep, width: float) -> list[Gauge]:
    """Return the gauges: what keeps, what writes, the candidate and (LSTM) what shows."""
    if result.cell == "lstm":
        named = [
            ("forget", "f", step.gates["forget"]),
            ("input", "i", step.gates["input"]),
            ("candidate", "g", step.candidate),
            ("output", "o", step.gates["output"]),
        ]
        shares: tuple[float, ...] = (0.16, 0.36, 0.545, 0.73)
    else:
        letters = ("z", "1 - z") if result.convention == "keep" else ("1 - z", "z")
        named = [
            ("keeps", letters[0], step.direct),
            ("writes", letters[1], 1.0 - step.direct),
            ("candidate", "n", step.candidate),
        ]
        shares = (0.2, 0.5, 0.75)
    return [
        Gauge(
            share * width,
            value,
            f"{name}\n{letter} = {number_text(value, 4)}",
            signed=name == "candidate",
        )
        for share, (name, letter, value) in zip(shares, named, strict=True)
    ]


def _size(step: WorkedStep) -> float:
    part = next(iter(step.before))
    return max(abs(step.before[part]), abs(step.after[part]), abs(step.direct * step.before[part]))


def _title(result: StepResult) -> str:
    part = next(iter(result.steps[0].before))
    count = len(result.steps)
    rest = "" if count == 1 else f" over {count} steps"
    kept = number_text(result.direct.value)
    return f"{cell_title(result.cell)}: the belt keeps {kept} of {part}_0{rest}"


def _caption(result: StepResult) -> str:
    more = len(result.steps) - MOST_STEPS
    rest = f" Steps after {MOST_STEPS} are in the table." if more > 0 else ""
    return (
        "The belt is as wide as the number that it carries (blue positive, orange negative); "
        f"gauges run from 0 to 1, the candidate's from -1 to 1.{rest}"
    )
