"""Results show themselves in a notebook: the figure, then the table, as one piece of HTML.

Importing this module tells every result how; `gradflow` does so when a result is first loaded.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure

from gradflow.present.benchmark import benchmark_outputs
from gradflow.present.decay import decay_outputs
from gradflow.present.depth import depth_outputs
from gradflow.present.inits import inits_outputs
from gradflow.present.inspect import inspect_outputs
from gradflow.present.outputs import Outputs
from gradflow.present.params import params_outputs
from gradflow.present.parity import parity_outputs
from gradflow.present.saturate import saturate_outputs
from gradflow.present.spectrum import spectrum_outputs
from gradflow.present.speed import speed_outputs
from gradflow.present.step import step_outputs
from gradflow.present.theme import alt_text, figure_bytes
from gradflow.present.watch import watch_outputs
from gradflow.records import Result

PRESENTERS: dict[str, Callable[[Any], Outputs]] = {
    "benchmark": benchmark_outputs,
    "decay": decay_outputs,
    "depth": depth_outputs,
    "saturate": saturate_outputs,
    "parity": parity_outputs,
    "spectrum": spectrum_outputs,
    "speed": speed_outputs,
    "step": step_outputs,
    "params": params_outputs,
    "inits": inits_outputs,
    "inspect": inspect_outputs,
    "watch": watch_outputs,
}
"""Command to the function that makes its outputs; each command adds its own."""


def result_html(result: Any) -> str:
    """Return a result as HTML for a notebook: figures with alt text, table, notes and checks.

    A result of a command that has no presenter shows its checks alone.
    """
    presenter = PRESENTERS.get(result.command)
    if presenter is None:
        return f"<div><p>gradflow {html.escape(result.command)}</p>{_checks(result)}</div>"
    outputs = presenter(result)
    images = "".join(figure_html(figure) for figure in outputs.figures.values())
    return f"<div>{images}{outputs.table.to_html()}{_checks(result)}</div>"


def figure_html(figure: Figure) -> str:
    """Return a figure as an `<img>` that holds its SVG: it needs no file and no network.

    As an image its ids are its own: two figures in one page do not disturb each other.
    """
    data = base64.b64encode(figure_bytes(figure, "svg")).decode("ascii")
    alt = html.escape(alt_text(figure), quote=True)
    width = round(figure.get_figwidth() * 96)
    style = f"width:{width}px;max-width:100%;background:white"
    return f'<img alt="{alt}" style="{style}" src="data:image/svg+xml;base64,{data}">'


def _checks(result: Result) -> str:
    items = "".join(
        f"<li>{'passed' if check.passed else '<strong>failed</strong>'}: "
        f"{html.escape(check.name)} ({html.escape(check.detail)})</li>"
        for check in result.checks
    )
    return f"<ul>{items}</ul>" if items else ""


Result.html_renderer = result_html
