"""Workers as jobs of a batch system: here two small programs play sbatch and scancel."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from gradflow.errors import SchedulerError
from gradflow.sweeps import load_rows, run_sweep
from tests.sweeps.processes import PATIENCE, alive, started, wait_until
from tests.sweeps.work import begun, logged, tasks_of

pytestmark = [
    pytest.mark.timeout(3 * PATIENCE),
    pytest.mark.skipif(os.name == "nt", reason="Slurm runs on Linux"),
]
SBATCH = """#!/bin/sh
cp "$1" {folder}/job.$$
setsid sh {folder}/job.$$ >/dev/null 2>&1 </dev/null &
echo $! >> {folder}/jobs
echo "Submitted batch job $!"
"""
SCANCEL = """#!/bin/sh
for job in "$@"; do kill -- -"$job"; done
"""


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    """A folder with the two programs; `jobs` in it will list the process groups of jobs."""
    folder = tmp_path / "batch"
    folder.mkdir()
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        (folder / name).write_text(text.format(folder=folder) if name == "sbatch" else text)
        (folder / name).chmod(0o755)
    return folder


def surroundings(batch: Path) -> dict[str, str]:
    """Return the environment of a machine that has this batch system."""
    path = f"{batch}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "DASK_JOBQUEUE__SLURM__DEATH_TIMEOUT": "5"}


def jobs_of(batch: Path) -> list[int]:
    """Return the process of each job that was submitted."""
    return [int(line) for line in (batch / "jobs").read_text().split()]


def test_a_sweep_runs_as_jobs_which_are_cancelled_at_its_end(batch: Path, tmp_path: Path):
    """Two jobs of one worker each; each exports what makes it fast."""
    arguments = [str(tmp_path), "slurm", "6", "0.3"]
    with started("tests.sweeps.drive", arguments, **surroundings(batch)) as driver:
        _, said = driver.communicate(timeout=2 * PATIENCE)
        assert driver.returncode == 0, said
        assert said == b""
        wait_until(lambda: not alive(jobs_of(batch)), "the end of all jobs")
    assert [row.status for row in load_rows(tmp_path)] == ["done"] * 6
    assert len(jobs_of(batch)) == 2
    assert len({process for _, process in begun(tmp_path / "log")}) == 2
    script = next(batch.glob("job.*")).read_text()
    assert "export MALLOC_TRIM_THRESHOLD_=1073741824" in script
    assert f"{sys.executable} -m distributed.cli.dask_worker" in script
    assert "--nthreads 1" in script


def test_jobs_end_when_their_driver_is_killed(batch: Path, tmp_path: Path):
    """The scheduler was in the driver: workers that have none left give up by themselves."""
    arguments = [str(tmp_path), "slurm", "40", "0.3"]
    with started("tests.sweeps.drive", arguments, **surroundings(batch)) as driver:
        assert driver.stdout is not None
        driver.stdout.readline()
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait(PATIENCE)
        jobs = jobs_of(batch)
        assert jobs
        wait_until(lambda: not alive(jobs), "the end of all jobs")
    workers = {process for _, process in begun(tmp_path / "log")}
    wait_until(lambda: not alive(workers), "the end of all workers")
    assert any(row.is_done for row in load_rows(tmp_path))


def test_without_its_extra_slurm_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The package that talks to batch systems is not needed otherwise."""
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    with pytest.raises(SchedulerError, match=r"needs dask-jobqueue.*\.\[slurm\]"):
        run_sweep(tasks_of(tmp_path / "log", 1), logged, folder=tmp_path, executor="slurm")
