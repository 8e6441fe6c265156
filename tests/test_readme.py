"""The README is true: its commands run, its Python runs, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import in_shell

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The README's code blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    """Every command line of the README's shell blocks, the parts of an `&&` one by one."""
    lines = "\n".join(blocks("sh")).splitlines()
    return [part.strip() for line in lines for part in line.split("&&") if part.strip()]


GRADFLOW = [line for line in commands() if line.split()[0].endswith("gradflow")]
SET_UP = [line for line in commands() if line not in GRADFLOW]


@pytest.mark.parametrize("line", GRADFLOW)
def test_a_command_of_the_readme_runs(line: str, tmp_path: Path):
    """It ends with 0, prints a result, and leaves the figure that its last line names."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    answer = in_shell(tmp_path, *shlex.split(line)[1:])
    assert answer.code == 0, answer.err
    assert answer.out.strip()
    figure = tmp_path / answer.err.strip().splitlines()[-1]
    assert figure.is_file(), answer.err


def test_the_set_up_of_the_readme_is_what_ci_runs():
    """`.ci/run` reads both set-up commands from here and runs them in a fresh clone."""
    assert [line.split()[:2] for line in SET_UP] == [
        ["python3", "-m"],
        [".venv/bin/pip", "install"],
        [".venv/bin/pip", "install"],
        [".venv/bin/python", "-m"],
    ]
    assert "README.md" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_python_of_the_readme_runs():
    """Pasted into a file, each block runs and prints what it says it prints."""
    assert blocks("python")
    for block in blocks("python"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", block],
            capture_output=True,
            text=True,
            timeout=300,
            cwd=ROOT,
        )
        assert done.returncode == 0, done.stderr
        assert float(done.stdout) < 0.0


def test_every_link_of_the_readme_leads_to_a_file():
    """Relative links and images name files of the repository."""
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    local = [target for target in targets if not target.startswith("http")]
    assert local
    assert [target for target in local if not (ROOT / target).exists()] == []


def test_every_page_is_linked_from_the_readme():
    """A page that nothing leads to is not found."""
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")}
    assert pages == set(re.findall(r"\]\((docs/[\w-]+\.md)\)", README))


def test_every_command_is_in_the_readme():
    """The table of commands and the program know the same ones, each once."""
    listed = re.findall(r"^\| `gradflow (\w+)`", README, flags=re.MULTILINE)
    helped = in_shell(ROOT, "--help")
    shown = set(re.findall(r"^│ ([a-z]\w+) ", helped.out, flags=re.MULTILINE))
    assert sorted(listed) == sorted(shown)
