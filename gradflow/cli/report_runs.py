"""What a report is made of: run folders that are there, and studies that are run and kept first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gradflow.cli.common import Request, measuring
from gradflow.errors import GradflowError, RunFolderError

if TYPE_CHECKING:
    from gradflow.experiments.report import Outcome, Study
    from gradflow.records.report import LeftOut, StoredRun
    from gradflow.settings.report import ReportSettings

STUDIES = "studies"  # of a report's folder: the runs that it made itself
_REPORT = "report.json"


def find_runs(paths: Sequence[str]) -> tuple[list[StoredRun], list[LeftOut]]:
    """Read run folders, and say of each that cannot be read why.

    A folder without a result stands for the run folders in it, a report's for its studies.
    """
    from gradflow.records.report import LeftOut, StoredRun
    from gradflow.store import load_result

    found: dict[Path, StoredRun] = {}
    left_out: list[LeftOut] = []
    for folder in (folder for path in paths for folder in _expanded(Path(path))):
        if folder.resolve() in found:
            continue
        try:
            found[folder.resolve()] = StoredRun(folder.as_posix(), load_result(folder))
        except GradflowError as problem:
            left_out.append(LeftOut(folder.as_posix(), str(problem)))
        except Exception as problem:  # a document of the right name and of any shape
            reason = f"is damaged: {type(problem).__name__} {problem}"
            left_out.append(LeftOut(folder.as_posix(), reason))
    return list(found.values()), left_out


def require_runs(found: Sequence[StoredRun], left_out: Sequence[LeftOut]) -> None:
    """Check that there is something to show.

    Raises:
        RunFolderError: there is nothing; says why of each folder that was named.
    """
    if found:
        return
    if not left_out:
        raise RunFolderError(
            "a report shows results, and none are named. Name run folders (gradflow report "
            "runs/*), or run the usual studies first: gradflow report --config report"
        )
    reasons = "\n".join(entry.reason for entry in left_out[:3])
    raise RunFolderError(f"of {len(left_out)} folders none can be shown:\n{reasons}")


def run_studies(
    request: Request, settings: ReportSettings
) -> tuple[list[str], list[LeftOut], str | None]:
    """Run the studies of a report, each into a folder of its own.

    Returns:
        The folders of those with a result, the reasons of those without, and how far it came
        where the user stopped it.
    """
    if not settings.studies:
        return [], [], None
    from gradflow import config, store
    from gradflow.experiments import report as studying
    from gradflow.records.report import LeftOut

    studies = studying.read_studies(settings.studies, seed=settings.seed)
    store.begin_run(request.folder, config.settings_toml(request.command, settings))
    folders: list[str] = []
    left_out: list[LeftOut] = []

    def prepare(study: Study) -> Path:
        folder = request.folder / STUDIES / study.name
        store.begin_run(folder, config.settings_toml(study.command, study.settings))
        return folder

    with measuring(request) as progress:
        for outcome in studying.run_studies(studies, prepare=prepare, progress=progress):
            folder = request.folder / STUDIES / outcome.study.name
            if outcome.result is not None:
                folders.append(_keep(outcome, folder))
            else:
                left_out.append(LeftOut(folder.as_posix(), outcome.reason))
            if outcome.interrupted is not None:
                return folders, left_out, outcome.interrupted
    return folders, left_out, None


def _keep(outcome: Outcome, folder: Path) -> str:
    """Store a study as its own command would, and return its folder."""
    from gradflow import config, store
    from gradflow.present.notebook import PRESENTERS

    study, result = outcome.study, outcome.result
    assert result is not None
    outputs = PRESENTERS[study.command](result)
    store.save_run(
        folder,
        result.to_json(),
        config=config.settings_toml(study.command, study.settings),
        tables=outputs.tables,
        figures=outputs.figure_files(),
    )
    return folder.as_posix()


def _expanded(path: Path) -> Iterator[Path]:
    """Yield the run folders that a path stands for; itself where it is one, or is none at all."""
    if not path.is_dir() or _holds_result(path):
        yield path
        return
    inner = path / STUDIES if (path / _REPORT).exists() else path
    runs = sorted(folder for folder in inner.glob("*") if _holds_result(folder))
    if runs or inner is path:
        yield from runs or [path]


def _holds_result(folder: Path) -> bool:
    from gradflow.records.watch_log import LOG_NAME

    return any((folder / name).is_file() for name in ("result.json", LOG_NAME))
