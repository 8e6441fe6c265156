"""The subject of `spectrum`: the cell with its weights, its first states and its input."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from gradflow.cells import CellLike, State, stack_cells
from gradflow.cells.base import Cell
from gradflow.cells.registry import BUILT_IN
from gradflow.checkpoints.layers import FoundLayer, load_checkpoint
from gradflow.checkpoints.layers.choose_layer import choose_layer
from gradflow.checkpoints.series import Series, load_series
from gradflow.checkpoints.user_cells import load_cell
from gradflow.config import SpectrumSettings
from gradflow.engine.trajectory import zero_input
from gradflow.errors import CheckpointError, SettingError, ShapeError
from gradflow.experiments.peak_memory import physical_memory

STEPS = 2000  # where neither --steps nor --data says how many


@dataclass(frozen=True)
class SpectrumSubject:
    """A cell (or an ensemble), a row of state and input per network and trajectory.

    `name` is what the cell is called, and `notes` what it has to say of itself.
    """

    cell: CellLike
    state: State
    x: Tensor
    gain: float | None
    series: Series | None
    name: str
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Networks times trajectories."""
        return self.state[0].shape[0]


def spectrum_subject(settings: SpectrumSettings) -> SpectrumSubject:
    """Return what the settings ask to measure.

    Built-in cells get random weights: recurrent ones normal with deviation gain / sqrt(hidden),
    input ones normal with deviation 1 / sqrt(input_size), biases zero. A user's cell keeps its own,
    and so does a layer of a file of weights.

    Raises:
        UnknownNameError, CellLoadError, CheckpointError: the cell or the file's layer does not
            exist or does not load.
        SeriesError, ShapeError: the data cannot be read, is too short or does not fit the cell.
        SettingError: several networks of a user's cell, or more than there is memory for.
    """
    series = None if settings.data is None else load_series(settings.data)
    width = settings.input_size if series is None else series.values.shape[2]
    generator = torch.Generator().manual_seed(settings.seed)
    stored = _of_file(settings)
    if stored is not None:
        width = stored.input_size if series is None else width
    built_in = stored is None and settings.cell in BUILT_IN
    if settings.networks > 1 and not built_in:
        raise SettingError(
            f"--networks draws the weights of a built-in cell, and {_name(settings)} has its own; "
            f"got {settings.networks}. Use --trajectories for more runs of the one network."
        )
    first = _load(settings, width, generator) if stored is None else _as_asked(stored, settings)
    _require_memory(first, settings)
    cells = [first, *(_load(settings, width, generator) for _ in range(settings.networks - 1))]
    rows = _rows(settings, series)
    cell = _stacked(cells, rows // settings.networks)
    state = _start(cell, rows, settings, generator)
    x = _input(cell, rows, settings, series, generator)
    gain = settings.gain if built_in else None
    notes = stored.notes if stored is not None else tuple(getattr(first, "notes", ()))
    name = settings.cell if stored is None else f"{_name(settings)}: {stored.label}"
    return SpectrumSubject(cell, state, x, gain, series, name, notes)


def _of_file(settings: SpectrumSettings) -> FoundLayer | None:
    """Return the layer of the file of weights; None where there is no file."""
    if settings.checkpoint is None:
        if settings.layer is not None:
            raise SettingError(
                f"--layer names a layer of a file of weights, and there is no --checkpoint; got "
                f"{settings.layer!r}."
            )
        return None
    return choose_layer(load_checkpoint(settings.checkpoint), settings.layer)


def _name(settings: SpectrumSettings) -> str:
    return settings.cell if settings.checkpoint is None else Path(settings.checkpoint).name


def _as_asked(stored: FoundLayer, settings: SpectrumSettings) -> CellLike:
    """Return a file's cell in the dtype and on the device that were asked for."""
    if stored.nonfinite:
        raise CheckpointError(
            f"{settings.checkpoint} has no spectrum, because {stored.nonfinite[0]}. Go back to the "
            "last good checkpoint."
        )
    cell = stored.cell
    if not isinstance(cell, nn.Module):
        return cell
    moved: CellLike = cell.to(device=settings.device, dtype=getattr(torch, settings.dtype))
    return moved


def _load(settings: SpectrumSettings, width: int, generator: torch.Generator) -> CellLike:
    cell = load_cell(
        settings.cell,
        width,
        settings.hidden,
        dtype=getattr(torch, settings.dtype),
        device=settings.device,
        reset=settings.reset,
    )
    if settings.cell in BUILT_IN and isinstance(cell, Cell):
        with torch.no_grad():
            for name, parameter in cell.named_parameters():
                drawn = torch.randn(parameter.shape, dtype=torch.float64, generator=generator)
                scale = {"weight_hh": settings.gain, "weight_ih": 1.0}.get(name, 0.0)
                parameter.copy_(scale / math.sqrt(parameter.shape[-1]) * drawn)
                _require_in_range(parameter, f"--gain {settings.gain:g}")
    return cell


def _require_memory(cell: CellLike, settings: SpectrumSettings) -> None:
    """Raise where the weights of all networks are more than the machine has memory for."""
    if settings.networks == 1 or not isinstance(cell, Cell):
        return
    weights = sum(p.numel() * p.element_size() for p in cell.parameters())
    needed, there = weights * settings.networks * settings.trajectories, physical_memory()
    if needed > there:
        raise SettingError(
            f"all networks are kept at once, {weights:,} bytes of weights for each run; "
            f"--networks {settings.networks} with --trajectories {settings.trajectories} would be "
            f"{needed / 1e9:,.0f} GB, and this machine has {there / 1e9:,.0f} GB. Ask for fewer."
        )


def _require_in_range(values: Tensor, what: str) -> None:
    if not bool(torch.isfinite(values).all()):
        raise SettingError(
            f"{what} makes numbers larger than {values.dtype} holds, "
            f"{torch.finfo(values.dtype).max:.2g}, and an infinite one has no derivative. "
            "Make it smaller, or use --dtype float64."
        )


def _stacked(cells: list[CellLike], each: int) -> CellLike:
    """Return one cell whose batch rows are the networks, `each` rows of one after the other."""
    built = [cell for cell in cells if isinstance(cell, Cell)]
    if len(cells) == 1:
        return cells[0]
    return stack_cells([cell for cell in built for _ in range(each)])


def _rows(settings: SpectrumSettings, series: Series | None) -> int:
    asked = settings.networks * settings.trajectories
    given = 1 if series is None else series.values.shape[1]
    if given not in (1, asked) and asked > 1:
        raise ShapeError(
            f"--data has {given} batch rows, and --networks times --trajectories are {asked} runs. "
            "Leave both out for a run per row, or give data of one row."
        )
    return max(asked, given)


def _start(
    cell: CellLike, rows: int, settings: SpectrumSettings, generator: torch.Generator
) -> State:
    """Return the first states: zeros, or a hidden state within (-1, 1) and normal other parts."""
    zeros = cell.initial_state(rows)
    if settings.start == "zero":
        return zeros
    drawn = [torch.randn(part.shape, dtype=torch.float64, generator=generator) for part in zeros]
    return tuple(
        (torch.tanh(values) if name == "h" else values).to(part)
        for name, values, part in zip(cell.parts, drawn, zeros, strict=True)
    )


def _input(
    cell: CellLike,
    rows: int,
    settings: SpectrumSettings,
    series: Series | None,
    generator: torch.Generator,
) -> Tensor:
    if series is not None:
        return _given_input(cell, rows, settings, series)
    steps = settings.warmup + (settings.steps or STEPS)
    zeros = zero_input(cell, rows, steps)
    if settings.input == "zero":
        return zeros
    return torch.randn(zeros.shape, dtype=torch.float64, generator=generator).to(zeros)


def _given_input(cell: CellLike, rows: int, settings: SpectrumSettings, series: Series) -> Tensor:
    length, _, width = series.values.shape
    if width != cell.input_size:
        raise ShapeError(
            f"--data has {width} inputs, and {settings.cell} takes {cell.input_size}: one column "
            "per input is needed."
        )
    left = length - settings.warmup
    if left < (settings.steps or 1):
        raise ShapeError(
            f"--data has {length} steps, of which the first {settings.warmup} are the warm-up and "
            f"{settings.steps or 1} are to be measured. Give more, or lower --warmup."
        )
    used = series.values[: settings.warmup + (settings.steps or left)]
    x = torch.as_tensor(used).to(dtype=cell.dtype, device=cell.device)
    _require_in_range(x, "--data")
    return x.expand(-1, rows, -1)
