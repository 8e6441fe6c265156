"""Where does the gradient travel: straight through the keep gate, or around it?

    full     P_t = J_t ... J_1              ds_t/ds_0
    direct   D_t = product of keep gates    what "f^T" and "z^T" stand for
    rest     R_t = P_t - D_t                through gates and candidate, by its own recursion

and the full product with one gate at a time taken as a constant (an ablation: these do not add up
to the whole, because paths through several gates are in each of them).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from gradflow.cells.protocol import CellLike
from gradflow.cells.shapes import State
from gradflow.engine.blocks import BlockName, Norm, locate_block, require_norm
from gradflow.engine.denormals import flushed_denormals
from gradflow.engine.paths.products import WITHOUT, PathPlaces, PathProducts
from gradflow.engine.paths.steps import PathSteps
from gradflow.engine.paths.zeros import Reasons, path_zero_reasons
from gradflow.engine.points import measured_points, points_within
from gradflow.engine.run_checks import require_run
from gradflow.engine.threads import threads_for
from gradflow.engine.trajectory import run_in_chunks
from gradflow.errors import UnknownNameError, nearest_name

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class PathNorms:
    """ln of the norms of ds_t/ds_0 by path, natural, float64, (points, batch) each; -inf is zero.

    `full`, `direct` and `rest` are of the measured `block`; `direct` and `rest` are None where the
    cell has no keep gate, or does not show it. `blocks` holds every (row part, column part) of the
    full Jacobian and "joint", where the state has several parts. `without` holds the full norm
    with one gate (or the candidate) taken as a constant, by its name. `zero_reason` has one reason
    per batch row, None where no norm is zero, under "full", "direct", "rest", "h,c" (a block) and
    "without forget". `notes` says what could not be measured.
    """

    steps: Tensor
    full: Tensor
    direct: Tensor | None
    rest: Tensor | None
    blocks: Mapping[BlockName, Tensor]
    without: Mapping[str, Tensor]
    zero_reason: Mapping[str, Reasons]
    block: BlockName
    norm: Norm
    cut: frozenset[str]
    notes: tuple[str, ...]
    final_state: State

    @property
    def departure(self) -> Tensor | None:
        """(ln full - ln direct) / T at the last step, (batch,): what f^T misses, nats per step."""
        if self.direct is None:
            return None
        return (self.full[-1] - self.direct[-1]) / int(self.steps[-1])


def path_norms(
    cell: CellLike,
    x: Tensor,
    state: State,
    cut: Collection[str] = (),
    block: BlockName | None = None,
    *,
    norm: Norm = "spectral",
    at: Tensor | list[int] | None = None,
    progress: Progress | None = None,
) -> PathNorms:
    """Measure along which paths the state at step 0 is felt at step t.

    Args:
        cell: a cell or an ensemble.
        x: the input, (time, batch, input).
        state: the state before the first step, one (batch, width) tensor per part.
        cut: gates (or "candidate") that are taken as constants along every path; none by default.
        block: (row part, column part), or "joint"; the kept part's own by default.
        norm: "spectral" or "frobenius".
        at: the steps to measure; default all.
        progress: called as `progress(steps done, steps in all)`.

    Returns:
        The norms; see `PathNorms`. A user's cell whose gates do not tell enough for an ablation
        lacks that entry, and `notes` says why.

    Raises:
        SubjectError: `cell` is no cell; `from_torch` gives those of a torch layer.
        ShapeError, DtypeError: x or state do not fit the cell, or `at` does not fit x.
        UnknownNameError: no such gate, block or norm.
        CellLoadError: a user's cell whose gates cannot be cut.

    >>> from gradflow.cells import LSTM, hold_
    >>> _ = torch.manual_seed(0)
    >>> cell = hold_(LSTM(1, 4).double(), forget=0.5, candidate_gain=1.0)
    >>> paths = path_norms(cell, torch.zeros(9, 1, 1).double(), cell.initial_state(1))
    >>> round(paths.direct[-1].item() / torch.log(torch.tensor(2.0)).item(), 6)
    -9.0
    >>> bool(paths.departure > 0.1), sorted(paths.without)
    (True, ['candidate', 'forget', 'input', 'output'])
    """
    require_norm(norm)
    require_run(cell, x, state)
    cut = (cut,) if isinstance(cut, str) else () if cut is None else cut
    if not isinstance(cut, Collection):
        raise UnknownNameError(f"'cut' names gates, such as ('forget',); got {cut!r}.")
    cut = tuple(cut)
    each = _cuttable(cell, cut)
    points = measured_points(at, x.shape[0])
    block = (cell.kept_part, cell.kept_part) if block is None else block
    places = PathPlaces.of(cell, state, locate_block(block, cell.parts, state))
    work = places.measured.state_size**2 * cell.hidden_size
    with flushed_denormals(), torch.no_grad(), threads_for(work):
        steps = PathSteps(cell, cut, each, kept=places.kept)
        products = PathProducts(places, like=state[0], norm=norm)
        for chunk in run_in_chunks(cell, x, state, steps.chunk_length(state, x.shape[0])):
            inside = points_within(points, chunk.start, chunk.steps)
            products.advance(steps.take(chunk.drive, chunk.states), inside)
            if progress is not None:
                progress(chunk.start + chunk.steps, x.shape[0])
        found = products.found(len(points))
    with torch.no_grad():  # out of the flushing: a subnormal weight is a path all the same
        reasons = path_zero_reasons(steps, x, state, places=places, points=points, found=found)
    return PathNorms(
        steps=points,
        full=found["full"],
        direct=found.get("direct"),
        rest=found.get("rest"),
        blocks={place.name: found[name] for name, place in places.blocks.items()},
        without={name: found[WITHOUT + name] for name in each if WITHOUT + name in found},
        zero_reason=reasons,
        block=places.measured.name,
        norm=norm,
        cut=frozenset(cut),
        notes=tuple(steps.notes),
        final_state=chunk.last,
    )


def _cuttable(cell: CellLike, cut: Collection[object]) -> list[str]:
    """Return the gates to cut one at a time: all but those that are cut anyway."""
    names = [gate.name for gate in cell.gates]
    names += ["candidate"] if cell.candidate_gate is not None else []
    for name in cut:
        if name not in names:
            raise UnknownNameError(
                f"the {cell.kind} has no gate {name!r} to cut. {nearest_name(str(name), names)}"
            )
    return [name for name in names if name not in cut]
