"""Along which paths does the gradient travel? `gradflow decay --paths`, curve by curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from gradflow.cells.base import Cell
from gradflow.cells.ensemble import stack_cells
from gradflow.config import DecaySettings
from gradflow.engine.blocks import BlockName
from gradflow.engine.paths import PathNorms, path_norms
from gradflow.engine.trajectory import zero_input
from gradflow.experiments.held_cells import HeldCell, start_state
from gradflow.experiments.rates import fit_rate, report_points
from gradflow.records.base import Check
from gradflow.records.paths import BLOCK, WITHOUT, CellPaths, PathLine

Progress = Callable[[int, int], None]
LN10 = math.log(10.0)
POINTS = 24  # steps that are measured where --points does not say how many: each has many norms
# Of ln, in the triangle of full, direct and rest: each step rounds each of them a few times.
SLACK, ROUNDINGS = 1e-9, 4.0


def measure_paths(
    group: Sequence[HeldCell], block: BlockName, settings: DecaySettings, progress: Progress
) -> Iterator[CellPaths]:
    """Yield the paths of each cell of one kind and gain; as one batched run where they stack.

    Args:
        group: the cells.
        block: what is measured along each path.
        settings: of the decay.
        progress: called as `progress(steps done, steps in all)`.
    """
    state = start_state(group[0].cell, settings)
    at = path_points(settings.steps, settings.points)
    batches = [group] if group[0].can_be_stacked else [[held] for held in group]
    for batch in batches:
        cells = [held.cell for held in batch if isinstance(held.cell, Cell)]
        cell = stack_cells(cells) if len(batch) > 1 else batch[0].cell
        norms = path_norms(
            cell,
            zero_input(cell, len(batch), settings.steps),
            tuple(part.expand(len(batch), -1) for part in state),
            block=block,
            norm=settings.norm,
            at=at,
            progress=progress,
        )
        for row, held in enumerate(batch):
            yield _cell_paths(held, norms, row, settings.state or held.cell.kept_part)


def path_points(steps: int, points: int | None) -> list[int]:
    """Return the steps at which paths are measured: 24 evenly spaced ones, or as `--points` says.

    >>> path_points(5, None)
    [1, 2, 3, 4, 5]
    >>> len(path_points(1000, None)), path_points(1000, 4)
    (24, [1, 10, 100, 1000])
    """
    if points is not None:
        return report_points(steps, points)
    spaced = np.unique(np.rint(np.linspace(1, steps, min(steps, POINTS))).astype(np.int64))
    return [int(step) for step in spaced]


def path_checks(paths: Sequence[CellPaths], dtype: str = "float64") -> tuple[Check, ...]:
    """Return the check that the three norms fit each other: no side of a triangle is too long.

    It allows what rounding to `dtype` may do to them by that step. Where no cell has a direct path
    there is nothing to compare, and no check.
    """
    resolution = torch.finfo(getattr(torch, dtype)).eps
    worst, allowed, where = -math.inf, SLACK, ""
    for cell in paths:
        full, direct, rest = (cell.line(name) for name in ("full", "direct", "rest"))
        if full is None or direct is None or rest is None:
            continue
        rounding = SLACK + ROUNDINGS * resolution * cell.steps
        logs = [LN10 * line.log10_norm for line in (full, direct, rest)]
        for index in range(3):
            others = np.logaddexp(logs[index - 1], logs[index - 2])
            with np.errstate(invalid="ignore"):  # zero beside two zeros
                excess = np.nan_to_num(logs[index] - others, nan=-math.inf)
            most = int((excess - rounding).argmax())
            if not where or excess[most] - rounding[most] > worst - allowed:
                worst, allowed = float(excess[most]), float(rounding[most])
                where = f"{cell.cell} at gate {cell.gate_value}, step {cell.steps[most]}"
    if not where:
        return ()
    return (
        Check(
            name="full, direct and rest fit each other",
            passed=worst <= allowed,
            detail=f"largest excess of ln of a norm over the sum of the other two: "
            f"{worst:.1e}, {allowed:.1e} allowed ({where})",
        ),
    )


def _cell_paths(held: HeldCell, norms: PathNorms, row: int, state: str) -> CellPaths:
    return CellPaths(
        cell=held.name,
        gate_name=held.gate_name,
        gate_value=held.gate_value,
        candidate_gain=held.candidate_gain,
        state=state,
        norm=norms.norm,
        steps=norms.steps.numpy(),
        lines=tuple(
            _line(path, norms, log_norms, row, norms.zero_reason[engine_name][row])
            for path, engine_name, log_norms in _named(norms)
        ),
        notes=norms.notes,
    )


def _named(norms: PathNorms) -> Iterator[tuple[str, str, Tensor]]:
    """Yield each path's name in the record, its name in the engine, and its norms."""
    yield "full", "full", norms.full
    if norms.direct is not None and norms.rest is not None:
        yield "direct", "direct", norms.direct
        yield "rest", "rest", norms.rest
    for gate, log_norms in norms.without.items():
        yield WITHOUT + gate, f"without {gate}", log_norms
    for block, log_norms in norms.blocks.items():
        name = block if isinstance(block, str) else ",".join(block)
        yield BLOCK + name, name, log_norms


def _line(path: str, norms: PathNorms, log_norms: Tensor, row: int, reason: str | None) -> PathLine:
    steps, values = norms.steps.numpy(), log_norms[:, row].cpu().numpy()
    zeros = steps[np.isneginf(values)]
    return PathLine(
        path=path,
        log10_norm=values / LN10,
        rate=fit_rate(steps, values),
        first_zero_step=int(zeros[0]) if len(zeros) else None,
        zero_reason=reason if len(zeros) else None,
    )
