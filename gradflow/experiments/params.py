"""How many parameters has a network, in which convention, and which width matches another's?

The formula and the built module are counted apart and compared. Both conventions, one bias vector
per gate and two, are always given: a difference of G H between two programs is no fault of either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gradflow.cells import cell_names
from gradflow.config import ParamsSettings
from gradflow.errors import SettingError, UnknownNameError, nearest_name
from gradflow.experiments.built_modules import built_parameters
from gradflow.experiments.parameter_counts import (
    CELL_ARITHMETIC,
    count_layers,
    head_bias,
    head_weights,
    require_architecture,
    require_workload,
    step_cost,
    total_parameters,
)
from gradflow.experiments.width_match import match_width
from gradflow.provenance import Stopwatch, provenance
from gradflow.records.base import Check
from gradflow.records.params import (
    Architecture,
    ParameterCount,
    ParamsResult,
    WidthMatch,
    Workload,
)
from gradflow.settings.params import VALUE_BYTES

Progress = Callable[[str, int, int], None]
DEFAULT_CELLS = ("rnn", "gru", "lstm")


def run_params(
    settings: ParamsSettings,
    *,
    progress: Progress | None = None,  # noqa: ARG001 - every question is asked in the same form
) -> ParamsResult:
    """Count the networks that the settings describe; see `count_networks`."""
    watch = Stopwatch()
    template = Architecture(
        cell=settings.cell[0],
        input_size=settings.input_size,
        hidden_size=settings.hidden,
        layers=settings.layers,
        bidirectional=settings.bidirectional,
        projection=settings.projection,
        bias=settings.bias,
        output_size=settings.output_size,
    )
    workload = Workload(settings.batch, settings.steps, VALUE_BYTES[settings.dtype])
    result = count_networks(template, settings.cell, match=settings.match, workload=workload)
    return replace(
        result, config=settings.to_json(), environment=provenance("params", settings, watch)
    )


def count_networks(
    template: Architecture,
    cells: Sequence[str] = DEFAULT_CELLS,
    *,
    match: str | int | None = None,
    workload: Workload | None = None,
) -> ParamsResult:
    """Count every cell in the same architecture, and match widths where asked.

    Args:
        template: the architecture; its own `cell` is not looked at, `cells` are.
        cells: names of cells; a projection is kept for the LSTM and left out, with a note, for
            the others.
        match: "lstm:128" (a cell and a width, in the same architecture) or a number of parameters:
            for each cell, the width with the nearest total is found in either convention.
        workload: batch, steps and bytes per number for the memory; one float32 step when
            not given.

    Returns:
        ParamsResult. Its checks compare formula and built module, and each matched width with its
        neighbours.

    Raises:
        SettingError, UnknownNameError: a width, projection, target or name that cannot be.
    """
    workload = Workload() if workload is None else workload
    require_workload(workload)
    if not cells:
        raise SettingError("cells must name at least one cell, because there is nothing to count.")
    networks = [_network_of(cell, template) for cell in cells]
    counts = tuple(count_parameters(network, workload) for network in networks)
    matches: tuple[WidthMatch, ...] = ()
    if match is not None:
        matches = tuple(
            found for network in networks for found in _match_network(network, template, match)
        )
    checks = [_count_check(count) for count in counts if count.two_biases is not None]
    checks += [_match_check(found) for found in matches]
    return ParamsResult(
        counts, workload, matches, notes=_notes(template, cells), checks=tuple(checks)
    )


def count_parameters(
    architecture: Architecture, workload: Workload | None = None
) -> ParameterCount:
    """Count one architecture by formula and by building it.

    Raises:
        SettingError, UnknownNameError: a width, projection or name that cannot be.

    >>> count = count_parameters(Architecture("lstm", 25, 100))
    >>> count.one_bias, count.two_biases, count.built
    (50400, 50800, 50800)
    """
    workload = Workload() if workload is None else workload
    _require_cell(architecture.cell)
    require_architecture(architecture)
    built = built_parameters(architecture)
    has_formula = architecture.cell in CELL_ARITHMETIC
    cost = step_cost(architecture) if has_formula else None
    values = workload.batch * workload.steps * workload.value_bytes
    return ParameterCount(
        architecture=architecture,
        layers=count_layers(architecture) if has_formula else (),
        head_weights=head_weights(architecture),
        head_bias=head_bias(architecture),
        one_bias=total_parameters(architecture, biases=1) if has_formula else None,
        two_biases=total_parameters(architecture, biases=2) if has_formula else None,
        built=built,
        parameter_bytes=built * workload.value_bytes,
        cost=cost,
        activation_bytes=None if cost is None else cost.kept_values * values,
    )


def read_match(text: str | int) -> tuple[str, int] | int:
    """Read what `match` asks for: a cell and a width, or a number of parameters.

    Raises:
        SettingError: the text is neither.

    >>> read_match("lstm:128"), read_match("71680")
    (('lstm', 128), 71680)
    """
    cell, colon, width = str(text).rpartition(":")
    if width.isdecimal() and int(width) > 0 and bool(cell) == bool(colon):
        return (cell, int(width)) if colon else int(width)
    raise SettingError(
        "match must be a cell and its width, such as lstm:128, or a number of parameters, such as "
        f"71680, because that is what widths are matched to; got {text!r}."
    )


def _network_of(cell: str, template: Architecture) -> Architecture:
    _require_cell(cell)
    projection = template.projection if cell == "lstm" else 0
    return replace(template, cell=cell, projection=projection)


def _match_network(
    network: Architecture, template: Architecture, match: str | int
) -> list[WidthMatch]:
    """Match one network's width: in both conventions, or as built where there is no formula."""
    asked = read_match(match)
    if network.cell not in CELL_ARITHMETIC:
        target = asked if isinstance(asked, int) else built_parameters(_target(asked, template))
        return [match_width(target, network, biases=None, count=built_parameters)]
    return [
        match_width(_target_total(asked, template, biases), network, biases=biases)
        for biases in ((2, 1) if network.bias else (0,))
    ]


def _target_total(asked: tuple[str, int] | int, template: Architecture, biases: int) -> int:
    if isinstance(asked, int):
        return asked
    wanted = _target(asked, template)
    if wanted.cell in CELL_ARITHMETIC:
        return total_parameters(wanted, biases=biases)
    return built_parameters(wanted)


def _target(asked: tuple[str, int], template: Architecture) -> Architecture:
    cell, width = asked
    wanted = replace(_network_of(cell, template), hidden_size=width)
    require_architecture(wanted)
    return wanted


def _require_cell(cell: str) -> None:
    if cell not in cell_names():
        raise UnknownNameError(f"there is no cell {cell!r}. {nearest_name(cell, cell_names())}")


def _count_check(count: ParameterCount) -> Check:
    return Check(
        name=f"{count.architecture.cell}: formula equals the built module",
        passed=count.built == count.two_biases,
        detail=f"formula {count.two_biases}, built {count.built}",
    )


def _match_check(found: WidthMatch) -> Check:
    """State that neither neighbour is nearer; a total grows with the width, so none other is."""
    others = [total for total in (found.narrower, found.wider) if total is not None]
    nearest = min(abs(total - found.target) for total in others)
    convention = {None: "as built", 0: "no bias", 1: "one bias", 2: "two biases"}[found.biases]
    return Check(
        name=f"{found.architecture.cell}, {convention}: no other width is nearer to the target",
        passed=abs(found.difference) <= nearest,
        detail=f"width {found.architecture.hidden_size} is {abs(found.difference)} from "
        f"{found.target}, its neighbours {nearest} or more",
    )


def _notes(template: Architecture, cells: Sequence[str]) -> tuple[str, ...]:
    others = [cell for cell in cells if cell != "lstm"]
    if not template.projection or not others:
        return ()
    return (
        f"projection {template.projection} is an LSTM's only; counted without it: "
        f"{', '.join(others)}",
    )
