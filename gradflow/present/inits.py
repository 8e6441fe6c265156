"""`gradflow inits` as tables, CSV rows and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from gradflow.present.inits_figure import inits_figure
from gradflow.present.numbers import ABSENT, log10_text, number_text
from gradflow.present.outputs import Outputs, Row
from gradflow.present.tables import Cells, Column, TextTable
from gradflow.records.distributions import LEVELS, Distribution, PerSeed
from gradflow.records.inits import InitFlow, InitsResult

__all__ = ["inits_figure", "inits_outputs", "inits_rows", "inits_table"]

_ENDS = (0.05, 0.5, 0.95)


def inits_outputs(result: InitsResult, *, style: str = "screen") -> Outputs:
    """Return a comparison ready to be shown and stored.

    `tables` are "inits" (a row per cell and initialization), "gates" (a row per gate of each),
    "curves" (a row per step of each) and "singular_values"; the figure is "inits".
    """
    return Outputs(
        table=inits_table(result),
        tables={
            "inits": inits_rows(result),
            "gates": [row for flow in result.inits for row in _gate_rows(flow)],
            "curves": [row for flow in result.inits for row in _curve_rows(flow)],
            "singular_values": [row for flow in result.inits for row in _singular_rows(flow)],
        },
        figures={"inits": inits_figure(result, style=style)},
    )


def inits_table(result: InitsResult) -> TextTable:
    """Return how the gradient fades, and in a second table the gates and the first step."""
    last = max((int(flow.steps[-1]) for flow in result.inits), default=0)
    fading = (
        Column("cell", numeric=False),
        Column("initialization", numeric=False),
        Column(f"log10\nat T={last}"),
        Column("factor\nper step"),
        Column("over draws"),
        Column("half-life\nsteps"),
        Column("steps\ngone"),
        Column("over draws"),
    )
    return TextTable(
        title=f"How a gradient fades, and when it is gone (norm {result.threshold:g}): "
        f"{conditions(result)}",
        columns=fading,
        sections=_sections(result, _fading_cells),
        notes=result.notes,
        shared=1,
        more=(_start_table(result),),
    )


def conditions(result: InitsResult) -> str:
    """Return the settings that the numbers depend on, as one line."""
    config = result.config
    facts = [f"hidden {config['hidden']}"] if "hidden" in config else []
    facts += [f"{config['seeds']} draws"] if "seeds" in config else []
    facts += [f"{config['input']} input"] if "input" in config else []
    facts += [f"{config['start']} start"] if "start" in config else []
    return ", ".join(facts) or "every draw on the same input"


def inits_rows(result: InitsResult) -> list[Row]:
    """Return one CSV row per cell and initialization, with every digit."""
    return [_summary(flow, result.threshold) for flow in result.inits]


def _sections(
    result: InitsResult, cells: Callable[[InitFlow], Cells]
) -> tuple[tuple[Cells, ...], ...]:
    names = dict.fromkeys(flow.cell for flow in result.inits)
    return tuple(tuple(cells(flow) for flow in result.of_cell(name)) for name in names)


def _fading_cells(flow: InitFlow) -> Cells:
    factors = sorted(2.718281828459045**rate for rate in flow.rates.known)
    return (
        flow.cell,
        flow.init,
        log10_text(float(flow.log10_norm[-1]), 4),
        number_text(flow.factor_per_step, 4),
        _ends(factors, 3),
        _half_life(flow),
        _horizon(flow.horizons.median, flow),
        _horizons(flow.horizons, flow),
    )


def _start_table(result: InitsResult) -> TextTable:
    """Return the keep gate and its time constant over the run, and the first step's Jacobian."""
    gated = any(flow.keep_gate is not None for flow in result.inits)
    spread = ("gate\n5%", "\n50%", "\n95%", "time const.\n5%", "\n50%", "steps\n95%")
    names = ("cell", "initialization")
    return TextTable(
        title=("The keep gate over the run (5%, median, 95%), and the first" if gated else "First")
        + " step's Jacobian",
        columns=(
            *(Column(name, numeric=False) for name in names),
            *(Column(heading) for heading in spread if gated),
            Column("sing.\nmax"),
            Column("spectral\nradius"),
        ),
        sections=_sections(result, partial(_start_cells, gated=gated)),
        shared=1,
    )


def _start_cells(flow: InitFlow, *, gated: bool) -> Cells:
    gate = None if flow.keep_gate is None else flow.keep_gate.value
    spreads = (*_three(gate), *_three(flow.time_constant))
    return (
        flow.cell,
        flow.init,
        *(spreads if gated else ()),
        number_text(float(flow.singular_values[0]), 3),
        number_text(flow.spectral_radii.mean, 3),
    )


def _three(spread: Distribution | None) -> tuple[str, ...]:
    if spread is None:
        return (ABSENT,) * len(_ENDS)
    return tuple(number_text(spread.quantiles[LEVELS.index(level)], 3) for level in _ENDS)


def _half_life(flow: InitFlow) -> str:
    if flow.half_life is not None:
        return number_text(flow.half_life, 4)
    if flow.rate is None:
        return ABSENT
    return "grows" if flow.rate > 0 else "holds"


def _horizon(value: float | None, flow: InitFlow) -> str:
    return f"> {int(flow.steps[-1])}" if value is None else f"{value:.0f}"


def _horizons(horizons: PerSeed, flow: InitFlow) -> str:
    low = min(horizons.known, default=None)
    high = max(horizons.known, default=None) if horizons.complete else None
    texts = [_horizon(value, flow) for value in (low, high)]
    return texts[0] if texts[0] == texts[1] else "..".join(texts)


def _ends(values: Sequence[float], digits: int) -> str:
    if not values:
        return ABSENT
    texts = [number_text(value, digits) for value in (values[0], values[-1])]
    return texts[0] if texts[0] == texts[1] else "..".join(texts)


def _summary(flow: InitFlow, threshold: float) -> Row:
    keep = flow.keep_gate
    return {
        "cell": flow.cell,
        "init": flow.init,
        "state": flow.state,
        "norm": flow.norm,
        "last_step": int(flow.steps[-1]),
        "log10_norm": float(flow.log10_norm[-1]),
        "log10_low": float(flow.log10_low[-1]),
        "log10_high": float(flow.log10_high[-1]),
        "rate": flow.rate,
        "rate_low": min(flow.rates.known, default=None),
        "rate_high": max(flow.rates.known, default=None),
        "factor_per_step": flow.factor_per_step,
        "half_life": flow.half_life,
        "horizon": flow.horizons.median,
        "horizon_low": min(flow.horizons.known, default=None),
        "horizon_high": max(flow.horizons.known) if flow.horizons.complete else None,
        "horizon_reason": flow.horizon_reason(threshold),
        "keep_gate": None if keep is None else keep.name,
        **_quantiles("keep_gate", None if keep is None else keep.value),
        **_quantiles("time_constant", flow.time_constant),
        "singular_value_max": float(flow.singular_values[0]),
        "singular_value_min": float(flow.singular_values[-1]),
        "spectral_radius": flow.spectral_radii.mean,
    }


def _quantiles(name: str, spread: Distribution | None) -> Row:
    values: Sequence[float | None] = (None,) * len(LEVELS) if spread is None else spread.quantiles
    named = {
        f"{name}_q{round(100 * level):02d}": v for level, v in zip(LEVELS, values, strict=True)
    }
    return {f"{name}_mean": None if spread is None else spread.mean, **named}


def _gate_rows(flow: InitFlow) -> Iterator[Row]:
    for gate in flow.gates:
        yield {
            "cell": flow.cell,
            "init": flow.init,
            "gate": gate.name,
            "role": gate.role,
            "bias_mean": gate.bias.mean,
            "bias_least": gate.bias.least,
            "bias_greatest": gate.bias.greatest,
            "at_rest_mean": None if gate.at_rest is None else gate.at_rest.mean,
            **_quantiles("value", gate.value),
            "recurrent_least": gate.recurrent_least,
            "recurrent_greatest": gate.recurrent_greatest,
            "recurrent_mean_square": gate.recurrent_mean_square,
        }


def _curve_rows(flow: InitFlow) -> Iterator[Row]:
    columns = (flow.steps, flow.log10_norm, flow.log10_low, flow.log10_high)
    for step, middle, low, high in zip(*columns, strict=True):
        yield {
            "cell": flow.cell,
            "init": flow.init,
            "step": int(step),
            "log10_norm": float(middle),
            "log10_low": float(low),
            "log10_high": float(high),
        }


def _singular_rows(flow: InitFlow) -> Iterator[Row]:
    for index, value in enumerate(flow.singular_values):
        yield {"cell": flow.cell, "init": flow.init, "index": index, "value": float(value)}
