"""`gradflow doctor` tells what works, whatever is broken."""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
from pathlib import Path

import pytest

from gradflow.cli import probes
from tests.cli.terminal import in_process, in_shell

PYPROJECT = Path(__file__).parent.parent.parent / "pyproject.toml"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_sound_installation_passes(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Versions, threads, devices and dtypes, and nothing is left on the disk."""
    answer = in_process(capsys, "doctor", "--format", "json")
    document = json.loads(answer.out)
    assert answer.code == 0, answer.out
    assert answer.err == ""
    results = document["results"]
    assert results["devices"][0] == "cpu"
    works = {row["dtype"]: row["works"] for row in results["dtypes"] if row["device"] == "cpu"}
    assert works["float32"]
    assert works["float64"]
    assert results["threads"]["torch"] >= 1
    assert results["run_folder"] == {"folder": "runs", "works": True, "detail": ""}
    assert document["environment"]["torch"]
    assert list(tmp_path.iterdir()) == []


def test_it_tries_every_package_that_gradflow_needs():
    """The list of the doctor is the list of the package."""
    needed = tomllib.loads(PYPROJECT.read_text())["project"]["dependencies"]
    assert {re.split("[<>=]", need)[0] for need in needed} == set(probes.PACKAGES)


@pytest.mark.parametrize("shown", ["table", "csv", "json"])
def test_a_broken_torch_is_named_and_the_rest_is_told(tmp_path: Path, shown: str):
    """The message of the failing import stands beside the package, without a traceback."""
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("raise OSError('libtorch_cpu.so is missing')")
    answer = in_shell(tmp_path, "doctor", "--format", shown, path=tmp_path)
    assert answer.code == 1
    assert "libtorch_cpu.so is missing" in answer.out
    assert "numpy" in answer.out
    assert answer.err == ""


@pytest.mark.parametrize("name", ["numpy", "matplotlib", "jaxtyping"])
def test_any_broken_package_is_named(tmp_path: Path, name: str):
    """The doctor itself needs none of them (without pydantic there is no command line at all)."""
    (tmp_path / f"{name}.py").write_text("raise RuntimeError('built for another machine')")
    answer = in_shell(tmp_path, "doctor", path=tmp_path)
    assert answer.code == 1
    assert f"BROKEN  {name} works  (RuntimeError: built for another machine)" in answer.out
    assert "Traceback" not in answer.out + answer.err


def test_a_run_folder_that_cannot_be_written_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    """A file where the folder would be: the doctor has really tried."""
    (tmp_path / "file").write_text("")
    answer = in_process(capsys, "doctor", "--out", "file/run", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(answer.out)))
    assert answer.code == 1
    assert rows[-1]["passed"] == "False"
    assert "NotADirectoryError" in rows[-1]["detail"]


def test_a_dtype_that_does_not_compute_is_told(monkeypatch: pytest.MonkeyPatch):
    """Some processors and devices lack a dtype; the reason is the device's own word."""
    monkeypatch.setattr(probes, "DTYPES", ("float64", "float3"))
    good, bad = probes.probe_dtypes("cpu", 0)
    assert (good["works"], good["detail"]) == (True, "")
    assert not bad["works"]
    assert "float3" in bad["detail"]
    (meta, _) = probes.probe_dtypes("nowhere", 0)
    assert not meta["works"]
