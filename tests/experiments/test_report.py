"""The studies of a report: read before anything is run, run one after another."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradflow.config import COMMAND_SETTINGS, find_config, load_config, settings_toml
from gradflow.errors import SettingError, UnknownNameError
from gradflow.experiments import report as studying
from gradflow.experiments.report import RUNNERS, SWEEPS, read_studies, run_studies
from gradflow.present.notebook import PRESENTERS
from gradflow.settings import BenchmarkSettings, ReportSettings, StepSettings

SHOWN_AGAIN = {"watch", "runs"}  # commands that show what another has stored


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _no_folder(_: object) -> Path:
    return Path("unused")


def test_everything_that_is_run_can_be_drawn() -> None:
    """A study that could not be shown would be no part of a report."""
    assert {*RUNNERS, *SWEEPS} <= set(PRESENTERS)
    assert {*RUNNERS, *SWEEPS} <= set(COMMAND_SETTINGS)
    assert set(PRESENTERS) - {*RUNNERS, *SWEEPS} <= SHOWN_AGAIN


def test_the_preset_asks_for_the_usual_studies() -> None:
    """Its studies exist, and are those of the textbooks' questions."""
    settings = ReportSettings(**load_config(find_config("report")))
    studies = read_studies(settings.studies or ())
    assert [study.command for study in studies] == [
        *("decay", "saturate", "parity", "params", "inits", "spectrum"),
    ]


def test_a_study_may_be_a_variant_of_a_command() -> None:
    """The name begins with the command: a preset, a file, or the settings of a stored run."""
    Path("step-mine.toml").write_text("c = 2.0\n")
    Path("run").mkdir()
    Path("run/config.toml").write_text(settings_toml("step", StepSettings(c=3.0)))
    names = ["benchmark-quick", "step-mine.toml", "run/config.toml", "step", "./step-mine.toml"]
    studies = read_studies(names)
    assert isinstance(studies[0].settings, BenchmarkSettings)
    assert [study.name for study in studies] == [
        *("benchmark-quick", "step-mine", "run", "step", "step-mine-2"),
    ]
    assert [getattr(study.settings, "c", None) for study in studies] == [None, 2.0, 3.0, 1.0, 2.0]


def test_a_wrong_study_is_refused_before_any_is_run() -> None:
    """A name that leads nowhere, a file of no command, a setting that cannot be."""
    Path("mine.toml").write_text("steps = 3\n")
    Path("decay-bad.toml").write_text("stpes = 3\n")
    Path("decay-low.toml").write_text("steps = 0\n")
    with pytest.raises(UnknownNameError, match="a study is a preset or a TOML file"):
        read_studies(["step", "nowhere"])
    with pytest.raises(UnknownNameError, match="begins with the name of its command"):
        read_studies(["step", "mine.toml"])
    with pytest.raises(UnknownNameError, match="Did you mean 'steps'"):
        read_studies(["decay-bad.toml"])
    with pytest.raises(SettingError, match="must be at least 1"):
        read_studies(["decay-low.toml"])


def test_progress_runs_over_all_studies_and_never_back() -> None:
    """From nothing to all, with the name of the study and its place."""
    told: list[tuple[str, int, int]] = []
    Path("decay-a.toml").write_text('steps = 4\nhidden = 2\ngate = [0.5]\ncell = ["lstm"]\n')
    studies = read_studies(["decay-a.toml", "step"])
    outcomes = list(
        run_studies(studies, prepare=_no_folder, progress=lambda *report: told.append(report))
    )
    assert [outcome.result is not None for outcome in outcomes] == [True, True]
    shares = [done / total for _, done, total in told]
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert max(share for share in shares if share < 0.5 or share == 0.5) > 0.25
    assert told[0][0].startswith("decay-a (1 of 2): ")
    assert told[-1][0].startswith("step (2 of 2): ")


def test_a_study_that_fails_is_named_and_the_next_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What only shows while it runs, such as a cell that is missing, costs no other study."""
    Path("decay-lost.toml").write_text('cell = ["nowhere.py:make"]\n')
    studies = read_studies(["decay-lost.toml", "step"])
    lost, step = run_studies(studies, prepare=_no_folder)
    assert lost.result is None
    assert "nowhere.py" in lost.reason
    assert step.result is not None


def test_a_sweep_is_given_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps its runs there, and goes on with them when it is asked again."""
    given: list[Path] = []

    def sweep(settings: object, *, folder: Path, progress: object) -> object:
        given.append(folder)
        return RUNNERS["step"](StepSettings(), progress=None)

    monkeypatch.setitem(studying.SWEEPS, "benchmark", sweep)
    studies = read_studies(["benchmark-quick"])
    (outcome,) = run_studies(studies, prepare=lambda study: Path("studies") / study.name)
    assert outcome.result is not None
    assert given == [Path("studies/benchmark-quick")]
