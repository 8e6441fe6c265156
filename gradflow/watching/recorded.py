"""A recorded training: read its log, and judge it, anew where a need is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gradflow.errors import SettingError
from gradflow.provenance import Stopwatch, provenance
from gradflow.records.base import Check
from gradflow.records.inspect import SEVERITIES
from gradflow.records.watch import FlowFinding, WatchRun
from gradflow.settings import WatchSettings
from gradflow.store import load_log
from gradflow.watching.findings import FindingMemory

Progress = Callable[[str, int, int], None]


def run_watch(settings: WatchSettings, *, progress: Progress | None = None) -> WatchRun:
    """Return the training that a log records.

    Its findings are those that were told while it ran; with `needs_lag` they are judged again,
    against that need. `training` keeps the settings and the provenance of the watch itself.

    Args:
        settings: which log, and what is asked of it.
        progress: called as `progress(what, done, total)`.

    Raises:
        SettingError: no log is named.
        RunFolderError: there is none, or it is no log.
    """
    if settings.log is None:
        raise SettingError(
            "gradflow watch shows a recorded training: name its log, or the run folder that "
            "gradflow.watch wrote, as in `gradflow watch runs/my-training`."
        )
    watch = Stopwatch()
    run = load_log(settings.log)
    if settings.needs_lag is not None:
        run = replace(run, findings=_judged(run, settings.needs_lag, progress))
    return replace(
        run,
        training={"config": run.config, "environment": run.environment},
        config=settings.to_json(),
        environment=provenance("watch", settings, watch),
        checks=_checks(run.findings, settings),
    )


def _judged(run: WatchRun, needs_lag: int, progress: Progress | None) -> tuple[FlowFinding, ...]:
    memory, findings = FindingMemory(needs_lag), list[FlowFinding]()
    for done, sample in enumerate(run.samples, start=1):
        findings += memory.new_of(sample)
        if progress is not None:
            progress("judging samples", done, len(run.samples))
    return tuple(findings)


def _checks(findings: tuple[FlowFinding, ...], settings: WatchSettings) -> tuple[Check, ...]:
    """Return the check that `fail_on` asks for."""
    if settings.fail_on == "never":
        return ()
    least = SEVERITIES.index(settings.fail_on)
    grave = [f"{f.code} at {f.update:,}" for f in findings if SEVERITIES.index(f.severity) >= least]
    detail = f"found {', '.join(grave)}" if grave else "none was found"
    name = f"no finding at or above {settings.fail_on}"
    return (Check(name=name, passed=not grave, detail=detail),)
