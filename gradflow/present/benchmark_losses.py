"""The losses of a benchmark over its seeds: what a mean in the table of outcomes hides."""

from __future__ import annotations

from gradflow.present import benchmark_words as words
from gradflow.present.numbers import ABSENT, number_text
from gradflow.present.tables import Cells, Column, TextTable
from gradflow.records.benchmark import BenchmarkResult, BenchmarkRow, TaskFacts


def losses_table(result: BenchmarkResult, comparison: str) -> TextTable:
    """Return the test loss, mean and least to greatest over seeds, beside the memoryless one.

    Of a copy the loss on recall too, which the loss over all steps mostly hides.
    """
    recall = (Column("recall\nloss"), Column("over\nseeds")) if result.task == "copy" else ()
    columns = (
        Column("T"),
        Column("cell", numeric=False),
        Column("initialization", numeric=False),
        Column("test\nloss"),
        Column("over\nseeds"),
        *recall,
    )
    sections = []
    for facts in result.tasks:
        rows = [row for row in result.compared(comparison) if row.delay == facts.delay]
        cells = (_loss(result, row) for row in rows)
        sections.append((_memoryless(result, facts), *cells))
    return TextTable(
        title=f"Losses over seeds. {words.comparison_title(result, comparison)}",
        columns=columns,
        sections=tuple(sections),
        shared=1,
    )


def _memoryless(result: BenchmarkResult, facts: TaskFacts) -> Cells:
    recall = (number_text(facts.recall_loss, 4), "") if result.task == "copy" else ()
    first = (str(facts.delay), ABSENT, "no memory", number_text(facts.loss, 4), "")
    return (*first, *recall)


def _loss(result: BenchmarkResult, row: BenchmarkRow) -> Cells:
    losses = (row.loss, row.recall_loss) if result.task == "copy" else (row.loss,)
    return (
        str(row.delay),
        words.short_cell(result, row.cell),
        words.init_name(row.cell, row.init),
        *(text for loss in losses for text in (words.mean(loss), words.ends(loss))),
    )
