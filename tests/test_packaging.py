"""What a user installs is whole, and in the versions that were tested."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import gradflow
from gradflow.config import preset_names
from tests.test_stairs import MODULES, imports

ROOT = Path(__file__).parent.parent
_DISTRIBUTIONS = {"PIL": "pillow"}  # packages that are imported by another name
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=100)
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_holds_the_package_the_presets_and_the_license(wheel: Path):
    """Every module, preset and template, the typing mark and the license; no tests."""
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "gradflow").rglob("*.py")}
    presets = {f"gradflow/configs/{name}.toml" for name in preset_names()}
    report = ROOT / "gradflow" / "present" / "report" / "templates"
    templates = {path.relative_to(ROOT).as_posix() for path in report.iterdir()}
    assert len(templates) == 3
    assert modules | presets | templates | {"gradflow/py.typed"} <= names
    assert any(name.endswith("LICENSE") for name in names)
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {
        "gradflow",
        "gradflow_rnn",
    }


def test_a_preset_is_found_in_an_installed_package(wheel: Path, tmp_path: Path):
    """Without a checkout beside it, `--config decay` reads the preset inside the package."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    program = "from gradflow.config import find_config; print(find_config('decay'))"
    answer = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert Path(answer.stdout.strip()) == tmp_path / "gradflow" / "configs" / "decay.toml"


def test_every_requirement_is_pinned_to_a_version_that_it_allows():
    """`pip install -c constraints.txt` gives everyone the versions that were tested."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    versions = {canonicalize_name(name): version for name, version in pins.items()}
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"]]
    for requirement in map(Requirement, wanted):
        assert versions[canonicalize_name(requirement.name)] in requirement.specifier


def test_every_package_that_is_imported_is_required():
    """What works only because something else has installed it breaks one day."""
    standard = set(sys.stdlib_module_names) | {"gradflow"}
    required = {Requirement(text).name for text in PROJECT["dependencies"]}
    for module in MODULES:
        found = {name.partition(".")[0] for name in imports(module)}
        found = {_DISTRIBUTIONS.get(name, name) for name in found}
        assert found - standard <= required, module


def test_the_version_is_the_same_everywhere():
    """In the package, in the citation and in the changelog."""
    assert f"version: {gradflow.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {gradflow.__version__}" in (ROOT / "CHANGELOG.md").read_text()
