"""`gradflow watch` as a table, CSV rows and a figure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradflow.present import watch_words as words
from gradflow.present.outputs import Outputs, Row
from gradflow.present.tables import Cells, Column, TextTable
from gradflow.present.thinning import marker_indices
from gradflow.present.watch_changes import horizon_changes
from gradflow.present.watch_figure import watch_figure
from gradflow.records.watch import FlowFinding, FlowLayer, Place, WatchRun

__all__ = ["watch_figure", "watch_outputs", "watch_rows", "watch_table"]

_PROFILE = 12  # columns
_MOST_FINDINGS, _MOST_CHANGES = 12, 12
_PROFILES = 200  # samples whose profiles the CSV table has


def watch_outputs(run: WatchRun, *, style: str = "screen") -> Outputs:
    """Return a watched training ready to be shown and stored; table, figure and CSV are "watch"."""
    return Outputs(
        table=watch_table(run),
        tables={
            "watch": watch_rows(run),
            "profiles": profile_rows(run),
            "findings": [finding.to_json() for finding in run.findings],
        },
        figures={"watch": watch_figure(run, style=style)},
    )


def watch_table(run: WatchRun) -> TextTable:
    """Return the table: a row per layer as it was last, findings and changes below."""
    columns = (
        Column("module", numeric=False),
        Column("kind", numeric=False),
        Column("layer", numeric=False),
        Column("steps"),
        Column("start    end\nof the data", numeric=False),
        Column("horizon\nat first"),
        Column("at\nlast"),
        Column("half-\nlife"),
        Column("left at\nstart"),
        Column("keep\ngate"),
        Column("found", numeric=False),
    )
    names = list(dict.fromkeys(name for name, *_ in run.places))
    sections = tuple(
        tuple(_cells(run, place) for place in run.places if place[0] == name) for name in names
    )
    notes = (*_finding_notes(run.findings), *_change_notes(run), *run.notes, *_sample_notes(run))
    title = f"{words.title(run)}\n{words.subtitle(run)}"
    return TextTable(title=title, columns=columns, sections=sections, notes=notes, shared=2)


def watch_rows(run: WatchRun) -> list[Row]:
    """Return one CSV row per sample and layer, without the profiles."""
    return [
        {
            "update": sample.update,
            **_place_row(layer),
            "steps": layer.steps,
            "horizon": layer.horizon,
            "half_life": layer.half_life,
            "cut_at": layer.cut_at,
            "log10_dL_dh_last": layer.log10_dL_dh[0] if layer.log10_dL_dh else None,
            "log10_dL_dh_first": layer.log10_dL_dh[-1] if layer.log10_dL_dh else None,
            "effective_forget_bias": layer.effective_forget_bias,
            **{f"gate_mean_{gate}": mean for gate, mean in layer.gate_means.items()},
            **{f"saturated_{gate}": share for gate, share in layer.saturated_fraction.items()},
            "log10_parameter_gradient_norm": sample.log10_parameter_gradient_norm,
            "loss_scale": sample.loss_scale,
        }
        for sample in run.samples
        for layer in sample.layers
    ]


def profile_rows(run: WatchRun) -> list[Row]:
    """Return one CSV row per sample, layer and distance; of a long training some samples only."""
    kept = marker_indices(np.arange(len(run.samples)), _PROFILES)
    return [
        {
            "update": run.samples[index].update,
            **_place_row(layer),
            "distance": distance,
            "log10_dL_dh": layer.log10_dL_dh[at],
            "log10_dL_dc": None if layer.log10_dL_dc is None else layer.log10_dL_dc[at],
        }
        for index in kept
        for layer in run.samples[index].layers
        for at, distance in enumerate(layer.distance)
    ]


def _place_row(layer: FlowLayer) -> Row:
    return {
        "name": layer.name,
        "layer": layer.layer,
        "direction": layer.direction,
        "call": layer.call,
    }


def _cells(run: WatchRun, place: Place) -> Cells:
    rows = run.of(place)
    first, last = rows[0][1], rows[-1][1]
    codes = [f.code for f in run.findings if words.gravest(last, [f]) is not None]
    return (
        last.name or "the model",
        last.kind,
        words.place_text(last).removeprefix(f"{last.name}, ").removeprefix("layer "),
        f"{last.steps:,}",
        words.sparkline(last.log10_dL_dh, _PROFILE),
        words.horizon_text(first),
        words.horizon_text(last),
        words.half_life_text(last),
        words.far_text(last),
        words.keep_text(last),
        ", ".join(dict.fromkeys(codes)) or "fine",
    )


def _finding_notes(findings: Sequence[FlowFinding]) -> list[str]:
    """Return the first findings, each warning with what to try."""
    notes = []
    for finding in findings[:_MOST_FINDINGS]:
        notes.append(words.finding_text(finding))
        if finding.severity != "info":
            notes.append(f"    Try: {finding.advice}")
    left = len(findings) - _MOST_FINDINGS
    return [*notes, f"... and {left} more: see the JSON."] if left > 0 else notes


def _change_notes(run: WatchRun) -> list[str]:
    """Return when horizons changed, in order."""
    changes = [
        (change, run.of(place)[0][1])
        for place in run.places
        for change in horizon_changes(run, place)
    ]
    changes.sort(key=lambda pair: pair[0].update)
    notes = [
        f"update {change.update:,}: horizon of {words.place_text(layer)}, {change.text}"
        for change, layer in changes
    ]
    left = len(notes) - _MOST_CHANGES
    return [*notes[:_MOST_CHANGES], f"... and {left} more."] if left > 0 else notes


def _sample_notes(run: WatchRun) -> list[str]:
    """Return what samples and their layers say beside the numbers, each thing once."""
    notes = [note for sample in run.samples for note in sample.notes]
    notes += [note for sample in run.samples for layer in sample.layers for note in layer.notes]
    reasons = [
        f"{words.place_text(layer)} has no horizon: {layer.horizon_reason}."
        for layer in (run.samples[-1].layers if run.samples else ())
        if layer.horizon is None and layer.horizon_reason and _says_more(layer.horizon_reason)
    ]
    return list(dict.fromkeys([*notes, *reasons]))


def _says_more(reason: str) -> bool:
    return not reason.startswith("not reached")  # the table says that by its >
