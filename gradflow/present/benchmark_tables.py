"""The tables of a benchmark: outcomes and costs at the same width and at the same parameters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gradflow.present import benchmark_words as words
from gradflow.present.benchmark_flow import flow_table
from gradflow.present.benchmark_losses import losses_table
from gradflow.present.numbers import ABSENT, number_text
from gradflow.present.tables import Cells, Column, TextTable
from gradflow.records.benchmark import (
    NO_RESULT,
    PARAMETERS,
    WIDTH,
    BenchmarkResult,
    BenchmarkRow,
    RateRow,
    TaskFacts,
)


def benchmark_table(result: BenchmarkResult) -> TextTable:
    """Return the outcomes at the same width, and after them all other tables.

    Both comparisons, each with its losses, costs and gradient flow; learning rates that are
    stable at short delays alone.
    """
    wide = _outcomes(result, WIDTH)
    more = [
        table(result, comparison)
        for comparison in (WIDTH, PARAMETERS)
        for table in (_outcomes, losses_table, _costs, flow_table)
    ][1:]
    if result.short_rates:
        more.append(_short_rates(result))
    return TextTable(
        title=f"{words.title(result)}\n{words.conditions(result)}\n\n{wide.title}",
        columns=wide.columns,
        sections=wide.sections,
        notes=notes(result),
        shared=1,
        more=tuple(more),
    )


def notes(result: BenchmarkResult) -> tuple[str, ...]:
    """Return findings, baselines, and what the comparison does and does not support."""
    rates = () if result.short_rates else (_NO_SHORT_RATE,)
    return (
        words.finding(result),
        words.VERDICTS,
        *words.baseline_sentences(result),
        *words.overlap_sentences(result),
        *rates,
        *result.supports,
        *result.notes,
    )


_NO_SHORT_RATE = (
    "No learning rate was stable at a short delay and not at a longer one, for any model."
)


def _outcomes(result: BenchmarkResult, comparison: str) -> TextTable:
    columns = (
        Column("T"),
        Column("cell", numeric=False),
        Column("initialization", numeric=False),
        Column("hidden"),
        Column("\nrate"),
        Column(_accuracy_heading(result)),
        Column("over\nseeds"),
        Column("test\nloss"),
        *((Column("recall\nloss"),) if result.task == "copy" else ()),
        Column("verdict", numeric=False),
    )
    return TextTable(
        title=words.comparison_title(result, comparison),
        columns=columns,
        sections=_sections(result, comparison, partial(_outcome, result), baseline=True),
        shared=1,
    )


def _accuracy_heading(result: BenchmarkResult) -> str:
    return "recall\nacc." if result.task == "copy" else "test\nacc."


def _sections(
    result: BenchmarkResult,
    comparison: str,
    cells: Callable[[BenchmarkRow], Cells],
    *,
    baseline: bool = False,
) -> tuple[tuple[Cells, ...], ...]:
    sections = []
    for facts in result.tasks:
        rows = [row for row in result.compared(comparison) if row.delay == facts.delay]
        first = (_memoryless(result, facts),) if baseline else ()
        sections.append((*first, *map(cells, rows)))
    return tuple(section for section in sections if section)


def _memoryless(result: BenchmarkResult, facts: TaskFacts) -> Cells:
    recall = (number_text(facts.recall_loss, 4),) if result.task == "copy" else ()
    return (
        str(facts.delay),
        ABSENT,
        "no memory",
        ABSENT,
        ABSENT,
        number_text(facts.accuracy, 3),
        "",
        number_text(facts.loss, 4),
        *recall,
        "baseline",
    )


def _outcome(result: BenchmarkResult, row: BenchmarkRow) -> Cells:
    recall = (words.mean(row.recall_loss),) if result.task == "copy" else ()
    return (
        str(row.delay),
        words.short_cell(result, row.cell),
        words.init_name(row.cell, row.init),
        str(row.hidden),
        number_text(row.learning_rate),
        words.mean(row.accuracy),
        words.ends(row.accuracy),
        words.mean(row.loss),
        *recall,
        _verdict(row),
    )


def _verdict(row: BenchmarkRow) -> str:
    """Return the verdict, and how many seeds learned where they differ."""
    if row.verdict == NO_RESULT:
        return row.verdict
    if 0 < row.learned < row.seeds:
        return f"{row.verdict}, {row.learned}/{row.seeds}"
    return row.verdict


def _costs(result: BenchmarkResult, comparison: str) -> TextTable:
    columns = (
        Column("T"),
        Column("cell", numeric=False),
        Column("initialization", numeric=False),
        Column("param-\neters"),
        Column("mult.-adds\n/sequence"),
        Column("train\ns"),
        Column("512 seq.\ns"),
        Column("memory\nMB"),
        Column("up-\ndates"),
        Column("step\ncalls"),
        Column("grad.\nnorm"),
    )
    return TextTable(
        title=f"Costs. {words.comparison_title(result, comparison)}",
        columns=columns,
        sections=_sections(result, comparison, partial(_cost, result)),
        shared=1,
    )


def _cost(result: BenchmarkResult, row: BenchmarkRow) -> Cells:
    def cost(name: str, digits: int = 3, scale: float = 1.0) -> str:
        spread = row.costs.get(name)
        if spread is None:
            return ABSENT
        value = spread.mean * scale
        return f"{value:.0f}" if 1e3 <= value < 1e6 else number_text(value, digits)

    def count(name: str) -> str:
        spread = row.costs.get(name)
        return ABSENT if spread is None else f"{spread.mean:.0f}"

    return (
        str(row.delay),
        words.short_cell(result, row.cell),
        words.init_name(row.cell, row.init),
        count("parameters"),
        count("multiply_adds"),
        cost("training_seconds"),
        cost("seconds_of_512"),
        cost("peak_bytes", scale=1e-6),
        count("updates"),
        count("step_calls"),
        cost("gradient_norm", 2),
    )


def _short_rates(result: BenchmarkResult) -> TextTable:
    columns = (
        Column("cell", numeric=False),
        Column("initialization", numeric=False),
        Column("hidden"),
        Column("learning\nrate"),
        Column("T"),
        Column("stable", numeric=False),
        Column("gradient\nmedian"),
        Column("\nlargest"),
        Column("up-\ndates"),
        Column("best\nloss"),
    )
    sections = tuple(
        tuple(
            _rate(result, row)
            for row in result.rates
            if row.name == (short.cell, short.init, short.hidden)
            and row.learning_rate == short.learning_rate
        )
        for short in result.short_rates
    )
    return TextTable(
        title="Learning rates that are stable at short delays alone, with the gradient norm before "
        "clipping",
        columns=columns,
        sections=sections,
        shared=4,
    )


def _rate(result: BenchmarkResult, row: RateRow) -> Cells:
    return (
        words.short_cell(result, row.cell),
        words.init_name(row.cell, row.init),
        str(row.hidden),
        number_text(row.learning_rate),
        str(row.delay),
        "yes" if row.stable else f"no{f', {row.diverged} diverged' if row.diverged else ''}",
        words.mean(row.gradient_norm, 2),
        number_text(None if row.largest_gradient is None else row.largest_gradient.greatest, 2),
        number_text(None if row.updates is None else round(row.updates.mean)),
        words.mean(row.validation_loss),
    )
