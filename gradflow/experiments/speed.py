"""How fast is the measurement, beside the usual ways and beside what cannot be avoided?"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

from gradflow.config import SpeedSettings
from gradflow.engine.threads import with_threads
from gradflow.errors import Interrupted
from gradflow.experiments.held_cells import require_device
from gradflow.experiments.peak_memory import peak_bytes
from gradflow.experiments.speed_methods import (
    RESTART_HIDDEN,
    RESTART_STEPS,
    Subject,
    Way,
    way_of,
)
from gradflow.provenance import Stopwatch, provenance
from gradflow.records.base import Check
from gradflow.records.speed import SpeedCase, SpeedRatio, SpeedResult, SpeedRow

Progress = Callable[[str, int, int], None]
# Round-off of a few hundred steps; a chain that is scaled at every step has about as much.
TOLERANCE = {"float64": 1e-10, "float32": 1e-3}
# Beyond so many steps watching every tensor takes longer than the measurement.
WATCHED_STEPS = 2000
# A method that takes longer than this is timed in one round alone.
SLOW = 2.0


def run_speed(settings: SpeedSettings, *, progress: Progress | None = None) -> SpeedResult:
    """Time every method on the same weights, input and state, in turns, and compare the norms.

    Args:
        settings: what to time.
        progress: called as `progress(what, runs done, runs in all)`.

    Returns:
        Median seconds, peak memory and agreement of each, and the ratios.

    Raises:
        UnknownNameError, DtypeError: a device that does not exist or lacks the dtype.
        Interrupted: stopped from the keyboard; its `partial` is the result of the cases that were
            complete by then.
    """
    watch = Stopwatch()
    rows: list[SpeedRow] = []
    last: dict[SpeedCase, Tensor] = {}
    try:
        for case in _cases(settings):
            require_device(settings.device, getattr(torch, case.dtype))
            with with_threads(case.threads):
                timed, norms = _time_case(case, settings, progress)
            rows += timed
            if "unroll" in norms:
                last[case] = norms["unroll"]
    except KeyboardInterrupt:
        if not rows:
            raise
        done = len({row.case for row in rows})
        stop = f"{done} of {len(list(_cases(settings)))} cases are timed."
        partial = _result(settings, rows, last, watch, interrupted=stop)
        raise Interrupted(stop, partial=partial) from None
    return _result(settings, rows, last, watch)


def _result(
    settings: SpeedSettings,
    rows: list[SpeedRow],
    last: Mapping[SpeedCase, Tensor],
    watch: Stopwatch,
    *,
    interrupted: str | None = None,
) -> SpeedResult:
    stopped = {} if interrupted is None else {"interrupted": interrupted}
    return SpeedResult(
        rows=tuple(rows),
        ratios=tuple(_ratios(rows)),
        notes=tuple(_notes(settings, last)),
        checks=(_agreement(rows),),
        config=settings.to_json(),
        environment=provenance("speed", settings, watch) | stopped,
    )


def _cases(settings: SpeedSettings) -> Iterator[SpeedCase]:
    for cell, dtype, threads, steps, hidden in itertools.product(
        settings.cell, settings.dtype, settings.threads, settings.steps, settings.hidden
    ):
        yield SpeedCase(cell=cell, hidden=hidden, steps=steps, dtype=dtype, threads=threads)


def _time_case(
    case: SpeedCase, settings: SpeedSettings, progress: Progress | None
) -> tuple[list[SpeedRow], dict[str, Tensor]]:
    """Return the rows of one case, and the norms that each method found."""
    subject = Subject(case, device=settings.device, seed=settings.seed)
    ways = {
        str(method): way_of(method, subject)
        for method in settings.method
        if method != "restart" or _allows_restart(case)
    }
    label = f"{case.cell} {case.hidden}, {case.steps} steps"
    seconds, norms = _in_turns(
        ways, settings.rounds, device=settings.device, label=label, progress=progress
    )
    watched = settings.device == "cpu" and case.steps <= WATCHED_STEPS
    rows = [
        SpeedRow(
            case=case,
            method=method,
            seconds=statistics.median(seconds[method]),
            rounds=len(seconds[method]),
            points=way.points,
            peak_bytes=peak_bytes(way.sample) if watched else None,
            max_relative_error=_error(method, norms, case.dtype),
        )
        for method, way in ways.items()
    ]
    return rows, norms


def _allows_restart(case: SpeedCase) -> bool:
    return case.hidden <= RESTART_HIDDEN and case.steps <= RESTART_STEPS


def _in_turns(
    ways: Mapping[str, Way],
    rounds: int,
    *,
    device: str,
    label: str,
    progress: Progress | None,
) -> tuple[dict[str, list[float]], dict[str, Tensor]]:
    """Run all ways in each round, after a first run that is not counted; slow ones only once."""
    seconds: dict[str, list[float]] = {method: [] for method in ways}
    norms: dict[str, Tensor] = {}
    first: dict[str, float] = {}
    total = (rounds + 1) * len(ways)
    for number in range(rounds + 1):
        for index, (method, way) in enumerate(ways.items()):
            if number > 1 and first[method] > SLOW:
                continue
            took, found = _clock(way, device)
            if number == 0:
                first[method], norms[method] = took, found.cpu()
            else:
                seconds[method].append(took)
            if progress is not None:
                progress(label, number * len(ways) + index + 1, total)
    return seconds, norms


def _clock(way: Way, device: str) -> tuple[float, Tensor]:
    _wait_for(device)
    start = time.perf_counter()
    found = way.run()
    _wait_for(device)
    return time.perf_counter() - start, found


def _wait_for(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def _error(method: str, norms: Mapping[str, Tensor], dtype: str) -> float | None:
    """Return the largest relative error of a method against gradflow (or of gradflow's)."""
    if method == "floor" or "gradflow" not in norms:
        return None
    other = method
    if method == "gradflow":
        other = next((name for name in ("chain", "chain-vmap") if name in norms), "")
        if not other:
            return None
    found, expected = norms[other], norms["gradflow"][-len(norms[other]) :]
    # a way without scale is compared where its own numbers are still normal
    readable = torch.isfinite(found) & (found > _smallest(dtype))
    if not bool(readable.any()):
        return None
    return float(torch.expm1(found - expected)[readable].abs().max())


def _smallest(dtype: str) -> float:
    """Return ln of the size below which a matrix without scale has lost digits."""
    info = torch.finfo(getattr(torch, dtype))
    return float(torch.tensor(info.tiny / info.eps, dtype=torch.float64).log())


def _notes(settings: SpeedSettings, last: Mapping[SpeedCase, Tensor]) -> Iterator[str]:
    """Yield what restart was left out of, and whether the unrolls underflowed."""
    left_out = any(not _allows_restart(case) for case in _cases(settings))
    if "restart" in settings.method and left_out:
        yield (
            f"restart is timed up to hidden {RESTART_HIDDEN} and {RESTART_STEPS} steps only: "
            "beyond that it takes minutes."
        )
    if last:
        lost = [
            f"{case.cell} {case.hidden} at T = {case.steps} in {case.dtype}"
            for case, log in last.items()
            if not float(log[-1]) > _smallest(case.dtype)
        ]
        word = f"It underflowed: {', '.join(lost)}." if lost else "It did not underflow here."
        yield f"unroll gives one point, the last T, and keeps no scale. {word}"


def _ratios(rows: list[SpeedRow]) -> Iterator[SpeedRatio]:
    """Yield how many times as long as gradflow each method takes, and gradflow as the floor."""
    by_case = {(row.case, row.method): row.seconds for row in rows}
    for row in rows:
        own = by_case.get((row.case, "gradflow"))
        if own is None or row.method == "gradflow":
            continue
        if row.method == "floor":
            yield SpeedRatio(row.case, "gradflow", "floor", own / row.seconds)
        else:
            yield SpeedRatio(row.case, row.method, "gradflow", row.seconds / own)


def _agreement(rows: list[SpeedRow]) -> Check:
    compared = [row for row in rows if row.max_relative_error is not None]
    worst = max(compared, key=lambda row: row.max_relative_error or 0.0, default=None)
    failed = [
        row for row in compared if not (row.max_relative_error or 0.0) <= TOLERANCE[row.case.dtype]
    ]
    if worst is None:
        return Check("all methods agree", True, "nothing to compare")
    detail = (
        f"largest relative difference of a norm {worst.max_relative_error:.1e} ({worst.method}, "
        f"{worst.case.cell} {worst.case.hidden}); tolerance "
        + ", ".join(f"{TOLERANCE[d]:g} ({d})" for d in sorted({r.case.dtype for r in compared}))
    )
    return Check("all methods agree", not failed, detail)
