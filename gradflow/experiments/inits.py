"""What does an initialization do to gradient flow, before any training?"""

from __future__ import annotations

from collections.abc import Callable

import torch

from gradflow.cells import make_cell
from gradflow.config import InitsSettings
from gradflow.engine.threads import threads_for
from gradflow.errors import GateValueError, Interrupted, UnknownNameError, nearest_name
from gradflow.experiments.held_cells import require_device
from gradflow.experiments.init_flow import measure_flow
from gradflow.experiments.inits_checks import inits_checks, inits_notes
from gradflow.provenance import Stopwatch, provenance
from gradflow.records.inits import InitFlow, InitsResult

Progress = Callable[[str, int, int], None]


def run_inits(settings: InitsSettings, *, progress: Progress | None = None) -> InitsResult:
    """Measure every initialization on every cell, on the same input and from the same state.

    Args:
        settings: what to compare.
        progress: called as `progress(what, steps done, steps in all)`.

    Returns:
        The flows, cell by cell; an initialization that a cell cannot have (a plain RNN has no
        gate) is left out, and a note says so.

    Raises:
        UnknownNameError: a state or device that does not exist.
        GateValueError: no cell can have any of the initializations.
        Interrupted: stopped from the keyboard; its `partial` is the result up to then.
    """
    watch = Stopwatch()
    require_device(settings.device, getattr(torch, settings.dtype))
    for cell in settings.cell:
        _require_state_name(cell, settings)
    flows: list[InitFlow] = []
    left_out: dict[str, list[str]] = {}
    stopped = _measure_all(flows, left_out, settings, progress)
    if stopped and not flows:
        raise Interrupted(stopped["interrupted"])
    if not flows:
        raise GateValueError(
            f"--init {','.join(settings.init)} sets the bias of a gate, and a plain RNN has none. "
            "Name an initialization of weights, such as orthogonal-per-gate."
        )
    notes = [
        f"{cell}: no gate has a bias that could be set, so left out: {', '.join(names)}."
        for cell, names in left_out.items()
    ]
    result = InitsResult(
        inits=tuple(flows),
        threshold=settings.threshold,
        notes=(*inits_notes(flows, settings), *notes),
        checks=inits_checks(flows, settings),
        config=settings.to_json(),
        environment={**provenance("inits", settings, watch), **stopped},
    )
    if stopped:
        raise Interrupted(stopped["interrupted"], partial=result)
    return result


def _measure_all(
    flows: list[InitFlow],
    left_out: dict[str, list[str]],
    settings: InitsSettings,
    progress: Progress | None,
) -> dict[str, str]:
    """Fill in every flow, and for each cell the schemes that it cannot have.

    Returns:
        Nothing, or {"interrupted": how far it came}: what was measured before stays in the lists.
    """
    pairs = [(cell, scheme) for cell in settings.cell for scheme in settings.init]
    for number, (cell, scheme) in enumerate(pairs):
        report = _report_to(progress, f"{cell}, {scheme}", settings.steps, (number, len(pairs)))
        try:
            with threads_for(settings.hidden**3):
                flows.append(measure_flow(cell, scheme, settings, progress=report))
        except GateValueError:  # a plain RNN has no gate; every other cell here has them all
            left_out.setdefault(cell, []).append(scheme)
        except (KeyboardInterrupt, Interrupted):  # half an initialization is no result
            return {"interrupted": f"{number} of {len(pairs)} initializations are measured."}
    return {}


def _report_to(
    progress: Progress | None, what: str, steps: int, place: tuple[int, int]
) -> Callable[[int, int], None]:
    """Return a report of one run that counts the runs before it too."""
    number, count = place

    def report(done: int, total: int) -> None:  # noqa: ARG001 - the total is that of all runs
        if progress is not None:
            progress(what, number * steps + done, count * steps)

    return report


def _require_state_name(cell: str, settings: InitsSettings) -> None:
    known = [*make_cell(cell, 1, 1).parts, "joint"]
    if settings.state is not None and settings.state not in known:
        raise UnknownNameError(
            f"--state {settings.state!r} is no part of the state of {cell}. "
            f"{nearest_name(settings.state, known)} Or compare {cell} by itself."
        )
