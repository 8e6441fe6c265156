"""The house has one staircase: imports go down it, and never in a circle."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import gradflow

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "gradflow"
FLOORS = [
    {"errors", "settings", "config", "records", "atomic", "documents", "store", "provenance"},
    {"cells"},
    {"engine", "checkpoints", "inits", "sweeps"},
    {"experiments", "watching"},
    {"present", "plot", "testing"},
    {"cli", "monitor"},
    {"__main__"},
]
LIGHT = FLOORS[0] | {"present", "plot", "sweeps"}  # so that stored results show without torch
DRAWING = {"matplotlib", "rich", "typer"}


def module_name(path: Path) -> str:
    """Return the dotted name of a module file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
INSIDE = [name for name in MODULES if name != "gradflow"]


def room(module: str) -> str:
    """Return the room of a module: cells for gradflow.cells.lstm."""
    return [*module.split("."), ""][1]


def floor(module: str) -> int:
    """Return the floor of a module, counted from the ground; the attic for one of no room."""
    levels = [level for level, rooms in enumerate(FLOORS) if room(module) in rooms]
    return levels[0] if levels else len(FLOORS)


@cache
def tree(module: str) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def imported_by(node: ast.AST) -> Iterator[str]:
    """Yield the modules that an import statement loads."""
    if isinstance(node, ast.Import):
        yield from (name.name for name in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield node.module or ""
        for name in node.names:
            if f"{node.module}.{name.name}" in MODULES:
                yield f"{node.module}.{name.name}"


def statements(module: str, *, typing_too: bool) -> Iterator[ast.AST]:
    """Yield every node of a module, without what only a type checker reads unless asked."""
    waiting: list[ast.AST] = [tree(module)]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += node.body if typing_too else node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def imports(module: str, *, typing_too: bool = False) -> set[str]:
    """Return the modules that a module imports, wherever in it."""
    nodes = statements(module, typing_too=typing_too)
    return {name for node in nodes for name in imported_by(node)} - {module}


def reached_from(module: str) -> set[str]:
    """Return all that importing a module loads, its packages' `__init__` too."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        parents = [name.rsplit(".", count)[0] for count in range(1, name.count(".") + 1)]
        for found in {name, *parents} - seen:
            seen.add(found)
            if found in MODULES and found != "gradflow":
                waiting += imports(found)
    return seen


@pytest.mark.parametrize("module", INSIDE)
def test_every_module_is_in_a_room_of_the_house(module: str):
    """A new room is a decision, and it is written here."""
    assert any(room(module) in rooms for rooms in FLOORS)


@pytest.mark.parametrize("module", INSIDE)
def test_imports_go_down_the_stairs(module: str):
    """A module knows what is below it, never what is above or across the landing."""
    for name in imports(module, typing_too=True):
        if name in INSIDE and room(name) != room(module) and floor(module) > 0:
            assert floor(name) < floor(module), f"{module} imports {name}"
        elif name in INSIDE:
            assert floor(name) <= floor(module), f"{module} imports {name}"


def test_no_module_imports_itself_round_a_circle():
    """Each module can be read after those that it imports."""
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        if module not in done:
            for name in sorted(imports(module) & set(INSIDE)):
                visit(name, (*path, module))
            done.add(module)

    for module in INSIDE:
        visit(module, ())


@pytest.mark.parametrize("module", [name for name in INSIDE if room(name) in LIGHT])
def test_torch_is_not_reached_from_the_ground_floor_or_from_what_draws(module: str):
    """Stored results are read, shown and drawn without torch."""
    assert "torch" not in {name.partition(".")[0] for name in reached_from(module)}


@pytest.mark.parametrize("module", [name for name in INSIDE if floor(name) < 4])
def test_nothing_below_present_draws_or_prints(module: str):
    """Measuring never draws."""
    assert not DRAWING & {name.partition(".")[0] for name in reached_from(module)}
    calls = [node for node in ast.walk(tree(module)) if isinstance(node, ast.Call)]
    assert "print" not in {ast.unparse(call.func) for call in calls}


@pytest.mark.parametrize("module", [name for name in INSIDE if floor(name) < 5])
def test_only_the_door_imports_inside_functions(module: str):
    """An import in a function hides what a module needs; start-up time excuses it in cli/."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert not [name for inner in ast.walk(node) for name in imported_by(inner)]


def test_importing_the_library_loads_nothing_heavy():
    """`import gradflow` and reading a stored result need no torch; the former not even NumPy."""
    program = (
        "import sys, gradflow; print(sorted({'torch', 'numpy', 'pydantic'} & set(sys.modules)));"
        "gradflow.load_result, gradflow.DecaySettings; print('torch' in sys.modules)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert answer.stdout.split("\n")[:2] == ["[]", "False"]


def test_every_name_of_the_library_is_there():
    """What `gradflow` lists, it has; another name is an error that says which."""
    for name in gradflow.__all__:
        assert getattr(gradflow, name) is not None
        assert name in dir(gradflow)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        gradflow.nonsense  # noqa: B018


def test_a_result_of_the_library_shows_itself_in_a_notebook():
    """A curve or a table says more at the end of a notebook's cell than a name in brackets."""
    settings = gradflow.DecaySettings(cell="lstm", gate=0.5, steps=3, hidden=2)
    page = gradflow.run_decay(settings)._repr_html_()
    assert "<table" in page
    assert "<img" in page
