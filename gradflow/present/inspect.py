"""`gradflow inspect` as a table, CSV rows and figures."""

from __future__ import annotations

from typing import Any

from gradflow.present import inspect_words as words
from gradflow.present.inspect_depth_figure import depth_figure
from gradflow.present.inspect_figure import gate_figure, gradient_figure, lag_figure
from gradflow.present.inspect_formats import github_text, junit_text
from gradflow.present.numbers import number_text
from gradflow.present.outputs import Outputs, Row
from gradflow.present.tables import Column, TextTable
from gradflow.records.inspect import InspectedLayer, InspectResult

__all__ = ["inspect_outputs", "inspect_rows", "inspect_table"]


def inspect_outputs(result: InspectResult, *, style: str = "screen") -> Outputs:
    """Return an inspection ready to be shown and stored; the first table and figure are by lag."""
    figures = {"inspect": lag_figure(result, style=style)}
    if any(layer.log10_dL_dh is not None for layer in result.layers):
        figures["gradient"] = gradient_figure(result, style=style)
    if any(gate.histogram for layer in result.layers for gate in layer.gates):
        figures["gates"] = gate_figure(result, style=style)
    depth = depth_figure(result, style=style) if result.config.get("depth") else None
    if depth is not None:
        figures["depth"] = depth
    return Outputs(
        table=inspect_table(result),
        tables={
            "inspect": inspect_rows(result),
            "findings": [finding.to_json() for finding in result.findings],
            "gradient": _gradient_rows(result),
        },
        figures=figures,
        formats={"github": github_text(result), "junit": junit_text(result)},
    )


def inspect_table(result: InspectResult) -> TextTable:
    """Return the table: the verdict above, a row per layer and direction, the findings below."""
    columns = (
        Column("layer", numeric=False),
        Column("kind", numeric=False),
        Column("input,\nhidden"),
        Column("horizon\n(steps)"),
        Column("half-life\n(steps)"),
        Column("Lyapunov\n(a step)"),
        Column("keep\ngate"),
        Column("its\nbias"),
        Column("shut\nor open"),
    )
    names = list(dict.fromkeys(layer.name for layer in result.layers))
    sections = tuple(
        tuple(_cells(layer) for layer in result.layers if layer.name == name) for name in names
    )
    notes = (*words.finding_lines(result), *result.notes, *_layer_notes(result))
    title = "\n".join(result.verdict)
    return TextTable(title=title, columns=columns, sections=sections, notes=notes)


def inspect_rows(result: InspectResult) -> list[Row]:
    """Return one CSV row per layer, direction and lag."""
    return [
        {
            "name": layer.name,
            "layer": layer.layer,
            "direction": layer.direction,
            "lag": lag,
            "log10_norm": layer.log10_norm[index],
            "low": layer.low[index],
            "high": layer.high[index],
            "windows": layer.windows[index],
            "direct_log10_norm": _at(layer.direct_log10_norm, index),
            "kept_log10_norm": _at(layer.kept_log10_norm, index),
        }
        for layer in result.layers
        for index, lag in enumerate(layer.lag)
    ]


def _gradient_rows(result: InspectResult) -> list[dict[str, Any]]:
    return [
        {
            "name": layer.name,
            "layer": layer.layer,
            "direction": layer.direction,
            "t": t,
            "log10_dL_dh": value,
            "log10_dL_dc": _at(layer.log10_dL_dc, t),
            "log10_dL_dh_own_precision": _at(layer.log10_dL_dh_own_precision, t),
        }
        for layer in result.layers
        for t, value in enumerate(layer.log10_dL_dh or ())
    ]


def _cells(layer: InspectedLayer) -> tuple[str, ...]:
    return (
        words.place_text(layer),
        layer.kind,
        f"{layer.input_size}, {layer.hidden_size}",
        words.horizon_text(layer),
        number_text(layer.half_life, 3),
        number_text(layer.lyapunov, 3),
        words.keep_gate_text(layer),
        words.bias_text(layer),
        words.saturation_text(layer),
    )


def _layer_notes(result: InspectResult) -> tuple[str, ...]:
    """Return each layer's notes once, and how windows were sampled where they were."""
    notes = list(dict.fromkeys(note for layer in result.layers for note in layer.notes))
    if result.config.get("depth") and all(layer.log10_dL_dh is None for layer in result.layers):
        notes.append("The heat map over layers and time (--depth) needs a loss.")
    sampled = [layer for layer in result.layers if layer.sampled]
    if sampled:
        notes.append(f"By lag: {sampled[0].sampling}.")
    return tuple(notes)


def _at(values: tuple[float | None, ...] | None, index: int) -> float | None:
    return None if values is None or index >= len(values) else values[index]
