"""`gradflow step` as a table, CSV rows and a drawing of the cell."""

from __future__ import annotations

from collections.abc import Iterator

from gradflow.present.cell_titles import cell_title
from gradflow.present.numbers import number_text
from gradflow.present.outputs import Outputs, Row
from gradflow.present.step_figure import step_figure
from gradflow.present.tables import Cells, Column, TextTable
from gradflow.records.step import Equation, StepResult

__all__ = ["step_figure", "step_outputs", "step_rows", "step_table"]

_LONGEST = 6  # factors of a product that are all written out


def step_outputs(result: StepResult, *, style: str = "screen") -> Outputs:
    """Return worked steps ready to be shown and stored.

    The CSV table is "step", a row per equation; the figure "step" is the cell as a drawing, where
    it was asked for (a result of the library always has it).
    """
    drawn = result.config.get("figure", True)
    return Outputs(
        table=step_table(result),
        tables={"step": step_rows(result)},
        figures={"step": step_figure(result, style=style)} if drawn else {},
    )


def step_table(result: StepResult) -> TextTable:
    """Return the equations with their numbers put in, and what the direct derivative leaves out."""
    direct = tuple(_three_rows("all", _shortened(result.direct)))
    steps = tuple(
        tuple(row for equation in step.equations for row in _three_rows(str(step.step), equation))
        for step in result.steps
    )
    left_out = TextTable(
        title="Left out: how the new state moves per unit of each pre-activation",
        columns=_columns("path"),
        sections=tuple(
            tuple(row for term in step.left_out for row in _three_rows(str(step.step), term))
            for step in result.steps
        ),
        shared=1,
    )
    return TextTable(
        title=_title(result),
        columns=_columns("quantity"),
        sections=(*steps, direct),
        notes=result.explanations,
        shared=1,
        more=(left_out,),
    )


def step_rows(result: StepResult) -> list[Row]:
    """Return one CSV row per equation, with every digit."""
    rows = [
        _csv_row(step.step, kind, equation)
        for step in result.steps
        for kind, equations in (("state", step.equations), ("left out", step.left_out))
        for equation in equations
    ]
    return [*rows, _csv_row(None, "direct", result.direct)]


def _title(result: StepResult) -> str:
    """Return the answer in one line: the new state and the direct coefficient."""
    last = result.steps[-1]
    parts = sorted(last.after, key=lambda part: part not in last.before)  # the kept part first
    state = ", ".join(f"{part}={number_text(last.after[part], 5)}" for part in parts)
    count = len(result.steps)
    after = "one step" if count == 1 else f"{count} steps"
    coefficient = number_text(result.direct.value)
    return f"{cell_title(result.cell)} after {after}: {state}; direct coefficient {coefficient}"


def _columns(what: str) -> tuple[Column, ...]:
    return (
        Column("step"),
        Column(what, numeric=False),
        Column("symbols, numbers, value", numeric=False),
    )


def _three_rows(step: str, equation: Equation) -> Iterator[Cells]:
    """Yield an equation as it is worked by hand: in symbols, with its numbers, its value."""
    yield (step, equation.name, f"= {equation.symbols}")
    yield ("", "", f"= {equation.numbers}")
    yield ("", "", f"= {number_text(equation.value)}")


def _shortened(direct: Equation) -> Equation:
    """Return the product of many keep gates with its middle left out."""
    return Equation(direct.name, _ends(direct.symbols), _ends(direct.numbers), direct.value)


def _ends(product: str) -> str:
    factors = product.split(" * ")
    if len(factors) <= _LONGEST:
        return product
    return " * ".join([*factors[:2], "...", factors[-1]])


def _csv_row(step: int | None, kind: str, equation: Equation) -> Row:
    return {
        "step": step,
        "kind": kind,
        "quantity": equation.name,
        "symbols": equation.symbols,
        "numbers": equation.numbers,
        "value": equation.value,
    }
