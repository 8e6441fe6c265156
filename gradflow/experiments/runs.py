"""What is in a run folder, and how do two runs differ?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gradflow.errors import SettingError, UnknownNameError, nearest_name
from gradflow.experiments.run_numbers import (
    SECONDS,
    Numbers,
    identity_of,
    is_named,
    result_numbers,
    task_numbers,
    task_words,
    varied_names,
)
from gradflow.provenance import Stopwatch, provenance
from gradflow.records.base import Check
from gradflow.records.runs import (
    ComparedNumber,
    Difference,
    RunFolder,
    RunsComparison,
    SweepListing,
)
from gradflow.records.sweeps import FAILED, StoredRow
from gradflow.settings.runs import RunsSettings

# What of an environment says where numbers come from; the rest differs in any two runs.
_SURROUNDINGS = (
    "gradflow", "git_sha", "git_dirty", "python", "torch", "numpy", "platform", "threads", "device",
    "dtype",
)  # fmt: skip


def list_sweep(run: RunFolder, settings: RunsSettings) -> SweepListing:
    """Return the rows of a sweep, or only those that failed.

    Raises:
        UnknownNameError: no row has a number that `metric` names.
    """
    names = dict.fromkeys(name for row in run.rows for name in row.single_values())
    metrics: list[str] = []
    for metric in settings.metric:
        found = [name for name in names if is_named(name, metric)]
        if not found and metric != SECONDS and names:
            raise _no_such(metric, names)
        metrics += found
    shown = tuple(row for row in run.rows if row.status == FAILED or not settings.failed)
    return SweepListing(
        folder=run.folder,
        rows=run.rows,
        shown=shown,
        varied=tuple(varied_names(run.rows)),
        metrics=tuple(dict.fromkeys(metrics)),
        config=settings.to_json(),
        environment=provenance("runs", settings, Stopwatch()),
    )


def compare_runs(a: RunFolder, b: RunFolder, settings: RunsSettings) -> RunsComparison:
    """Return two runs side by side; of a sweep, the tasks that both have done.

    "seconds" is the time of the whole run; of a sweep, that of all tasks that both have done, each
    as its worker took it.

    Raises:
        UnknownNameError: the two have no number in common that a metric names.
        SettingError: a factor is to judge, and of a metric there is no number in both.
    """
    numbers = [
        number for metric in settings.metric for number in _compared(metric, a, b, settings.factor)
    ]
    if settings.factor is not None:
        _require_judged(settings.metric, numbers)
    same_command = a.command == b.command
    names = None if same_command else [name for name in a.settings if name in b.settings]
    return RunsComparison(
        folders=(a.folder, b.folder),
        numbers=tuple(numbers),
        factor=settings.factor,
        settings=_differences(a.settings, b.settings, names),
        surroundings=_differences(a.environment, b.environment, _SURROUNDINGS),
        checks_passed=(_passed(a), _passed(b)),
        notes=tuple(_notes(a, b)),
        config=settings.to_json(),
        environment=provenance("runs", settings, Stopwatch()),
        checks=tuple(_checks(numbers, settings.factor)),
    )


def _compared(
    metric: str, a: RunFolder, b: RunFolder, factor: float | None
) -> list[ComparedNumber]:
    of_a, of_b = _numbers(metric, a, b)
    shared = [place for place in of_a if place in of_b]
    if not shared:
        raise _no_such(metric, {*_names(a), *_names(b), SECONDS})
    return [_number(place, of_a[place], of_b[place], factor) for place in sorted(shared, key=_name)]


def _require_judged(metrics: Sequence[str], numbers: Sequence[ComparedNumber]) -> None:
    """Raise SettingError where nothing of a metric could be judged: that would pass whatever is."""
    for metric in metrics:
        named = [number for number in numbers if is_named(number.metric, metric)]
        if not any(map(_is_in_both, named)):
            of = f" ({named[0].what})" if named else ""
            raise SettingError(
                f"--factor judges numbers that both runs have, and there is no {metric}{of} in "
                "both. Compare runs of the same tasks, or name another --metric."
            )


def _is_in_both(number: ComparedNumber) -> bool:
    return number.a is not None and number.b is not None


def _numbers(metric: str, a: RunFolder, b: RunFolder) -> tuple[Numbers, Numbers]:
    """Return the numbers of both runs that the metric names, by the same words."""
    if metric == SECONDS:
        of = "tasks that both have done" if a.rows and b.rows else "the whole run"
        return {(SECONDS, of): _seconds(a, b)}, {(SECONDS, of): _seconds(b, a)}
    if a.rows and b.rows:
        identity = identity_of(a, b)
        return task_numbers(a.rows, metric, identity), task_numbers(b.rows, metric, identity)
    return result_numbers(_results(a), metric), result_numbers(_results(b), metric)


def _seconds(run: RunFolder, other: RunFolder) -> float | None:
    if not run.rows:
        return run.environment.get(SECONDS)
    done = _shared_tasks(run, other) if other.rows else [row for row in run.rows if row.is_done]
    return sum(row.seconds or 0.0 for row in done) if done else None


def _shared_tasks(run: RunFolder, other: RunFolder) -> list[StoredRow]:
    identity = identity_of(run, other)
    there = {task_words(row, identity) for row in other.rows if row.is_done}
    return [row for row in run.rows if row.is_done and task_words(row, identity) in there]


def _name(place: tuple[str, str]) -> str:
    return place[0]


def _number(
    place: tuple[str, str], a: float | None, b: float | None, factor: float | None
) -> ComparedNumber:
    ratio = b / a if a and b is not None else None
    past = factor is not None and a is not None and b is not None and _is_past(a, b, factor)
    return ComparedNumber(*place, a, b, ratio, past)


def _is_past(a: float, b: float, factor: float) -> bool:
    """Return whether b is more than `factor` times a, or less for a factor below 1.

    Of negative numbers the sizes count; a change of sign, or from zero, is past any factor.
    """
    if a == 0 or b / a < 0:
        return b != 0
    return b / a > factor if factor >= 1 else b / a < factor


def _checks(numbers: Sequence[ComparedNumber], factor: float | None) -> Iterable[Check]:
    """Yield for each metric whether the second run stays within the factor of the first."""
    if factor is None:
        return
    side = "at most" if factor >= 1 else "at least"
    for metric in dict.fromkeys(number.metric for number in numbers):
        named = [number for number in numbers if number.metric == metric]
        judged = [number for number in named if _is_in_both(number)]
        past = [number for number in judged if number.past]
        detail = f"{len(judged) - len(past)} of {len(judged)}"
        if past:
            first = past[0]
            detail += f"; of {first.what}: {first.a:.6g}, then {first.b:.6g}"
        if len(judged) < len(named):
            detail += f"; {len(named) - len(judged)} not in both, and not judged"
        name = f"{metric} is {side} {factor:g} times what it was"
        yield Check(name, not past, detail)


def _differences(
    a: Mapping[str, Any], b: Mapping[str, Any], names: Sequence[str] | None = None
) -> tuple[Difference, ...]:
    every = names if names is not None else tuple(dict.fromkeys((*a, *b)))
    return tuple(
        Difference(name, a.get(name), b.get(name)) for name in every if a.get(name) != b.get(name)
    )


def _passed(run: RunFolder) -> tuple[int, int] | None:
    if run.document is None:
        return None
    checks = run.document["checks"]
    return sum(bool(check["passed"]) for check in checks), len(checks)


def _notes(a: RunFolder, b: RunFolder) -> Iterable[str]:
    if a.command != b.command and a.document and b.document:
        yield (
            f"They are of two commands, {a.command} and {b.command}: their times may be compared, "
            "and numbers of the same name mean what each command means by them."
        )
    for run, other in ((a, b), (b, a)):
        if run.document is None:
            yield f"{run.folder} has no result: its sweep has not come to its end."
        if run.rows and other.rows:
            done = [row for row in run.rows if row.is_done]
            alone = len(done) - len(_shared_tasks(run, other))
            if alone:
                yield f"{alone} of {len(done)} done tasks are in {run.folder} alone; left out."


def _results(run: RunFolder) -> Mapping[str, Any]:
    return dict(run.document["results"]) if run.document else {}


def _names(run: RunFolder) -> set[str]:
    """Return the names of the numbers that a run has."""
    names = {name for row in run.rows for name in row.single_values()}
    waiting: list[Any] = [_results(run)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            names |= {key for key, inner in value.items() if _is_number_or_list_of_them(inner)}
            waiting += value.values()
        elif isinstance(value, list):
            waiting += [entry for entry in value[:50] if isinstance(entry, Mapping | list)]
    return names


def _is_number_or_list_of_them(value: Any) -> bool:
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, int | float) and not isinstance(first, bool)


def _no_such(metric: str, known: Iterable[str]) -> UnknownNameError:
    return UnknownNameError(
        f"--metric names a number that every run has, and there is no {metric!r} to list or "
        f"compare. {nearest_name(metric, known)}"
    )
