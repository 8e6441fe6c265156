"""What the tables and figures of a benchmark say in words: titles, tasks, conditions, findings."""

from __future__ import annotations

from gradflow.present.cell_titles import CELL_TITLES, cell_title, short_names
from gradflow.present.numbers import ABSENT, counted, number_text
from gradflow.records.benchmark import (
    LEARNED,
    PARAMETERS,
    WIDTH,
    BenchmarkResult,
    BenchmarkRow,
    TaskFacts,
)
from gradflow.records.benchmark_runs import Spread

AS_MADE = "torch-default"
VERDICTS = (
    "Learned: an accuracy of 0.9 or more on the test set. Not learned: a loss of 0.9 or more of "
    "that without memory. Partly: between."
)


def task_words(result: BenchmarkResult) -> str:
    """Return the task in a few words."""
    config = result.config
    if result.task == "copy":
        symbols = counted(config.get("symbols", 0), "symbol")
        return f"delayed copy of {symbols} of {config.get('alphabet')}"
    if result.task == "signal":
        return f"first of T tokens decides, {config.get('distractors')} distractor tokens"
    return "sum of the two marked of T numbers"


def title(result: BenchmarkResult) -> str:
    """Return the title of the benchmark."""
    return f"Who learns it: {task_words(result)}"


def conditions(result: BenchmarkResult) -> str:
    """Return what all models share, as one line."""
    config = result.config
    rates = ",".join(f"{rate:g}" for rate in config.get("learning_rate", ()))
    facts = [
        counted(config.get("seeds", 0), "seed"),
        f"batch {config.get('batch')}",
        f"at most {counted(config.get('updates', 0), 'update')}",
        f"{config.get('optimizer')}, learning rates {rates}",
        f"clip {config.get('clip'):g}" if config.get("clip") else "no clipping",
    ]
    return ", ".join(facts)


def comparison_title(result: BenchmarkResult, comparison: str) -> str:
    """Return the heading of one of the two comparisons."""
    if comparison == WIDTH:
        return f"Same hidden width, {result.config.get('hidden')} units"
    return f"Nearest parameter count, to {result.target:,}"


def model_name(cell: str, init: str) -> str:
    """Return a model in short: its initialization only where it is another than torch's.

    >>> model_name("lstm", "torch-default"), model_name("lstm", "forget-bias:2")
    ('LSTM', 'LSTM forget-bias:2')
    """
    name = cell_title(cell)
    return name if init == AS_MADE else f"{name} {init}"


def row_name(row: BenchmarkRow) -> str:
    """Return a row's model in short."""
    return model_name(row.cell, row.init)


def init_name(cell: str, init: str) -> str:
    """Return an initialization as tables show it; a user's cell comes as its code makes it.

    >>> init_name("gru", "torch-default"), init_name("mine.py:make", "torch-default")
    ('torch-default', 'as made')
    """
    return "as made" if init == AS_MADE and cell not in CELL_TITLES else init


def ends(spread: Spread | None, digits: int = 3) -> str:
    """Return the least and the greatest of a spread, one number where they read the same.

    >>> ends(Spread(0.5, 0.25, 0.75)), ends(Spread(1.0, 1.0, 1.0)), ends(None)
    ('0.25..0.75', '1', '-')
    """
    if spread is None:
        return ABSENT
    texts = [number_text(value, digits) for value in (spread.least, spread.greatest)]
    return texts[0] if texts[0] == texts[1] else "..".join(texts)


def mean(spread: Spread | None, digits: int = 3) -> str:
    """Return the mean of a spread."""
    return ABSENT if spread is None else number_text(spread.mean, digits)


def score_name(result: BenchmarkResult) -> str:
    """Return what the accuracy is of."""
    return {"copy": "recall accuracy", "signal": "accuracy"}.get(
        result.task, "share of sums within 0.1"
    )


def loss_name(result: BenchmarkResult) -> str:
    """Return what the loss is."""
    return {"copy": "recall loss (nats)", "signal": "loss (nats)"}.get(
        result.task, "mean squared error"
    )


def finding(result: BenchmarkResult) -> str:
    """Return who learned at which delay, in a sentence or two."""
    parts = []
    for facts in result.tasks:
        rows = [row for row in result.compared(WIDTH) if row.delay == facts.delay]
        learned = [row_name(row) for row in rows if row.verdict == LEARNED]
        parts.append(f"T={facts.delay}: {', '.join(learned) if learned else 'none'}")
    same = f"Learned at the same width: {'; '.join(parts)}."
    return f"{same} {_difference(result)}".strip()


def _difference(result: BenchmarkResult) -> str:
    """Return whether the two comparisons agree on who learned."""
    by_name = {
        comparison: {
            (row.cell, row.init, row.delay): row.verdict == LEARNED
            for row in result.compared(comparison)
        }
        for comparison in (WIDTH, PARAMETERS)
    }
    wide, matched = by_name[WIDTH], by_name[PARAMETERS]
    other = [key for key in wide if key in matched and wide[key] != matched[key]]
    if not other:
        return "The nearest parameter count gives the same list."
    names = ", ".join(f"{model_name(cell, init)} at T={delay}" for cell, init, delay in other)
    return f"The nearest parameter count says otherwise of {names}."


def baseline_sentence(result: BenchmarkResult, facts: TaskFacts) -> str:
    """Return what a memoryless model reaches at a delay."""
    if result.task == "copy":
        return (
            f"Without memory, T={facts.delay}: loss N ln K/(T+2N) = {number_text(facts.loss, 4)} "
            f"over all {facts.steps} steps, ln K = {number_text(facts.recall_loss, 4)} on recall, "
            f"accuracy 1/K = {number_text(facts.accuracy, 4)}."
        )
    what = "ln 2" if result.task == "signal" else "1/6"
    return (
        f"Without memory, at every delay: loss {what} = {number_text(facts.loss, 4)}, accuracy "
        f"{number_text(facts.accuracy, 3)}."
    )


def baseline_sentences(result: BenchmarkResult) -> list[str]:
    """Return what a memoryless model reaches, delay by delay where that differs."""
    facts = result.tasks if result.task == "copy" else result.tasks[:1]
    return [baseline_sentence(result, entry) for entry in facts]


def overlap_sentences(result: BenchmarkResult) -> list[str]:
    """Return a warning for each delay at which sets had to share sequences."""
    return [
        f"T={facts.delay}: there are {facts.different} different sequences, so training, "
        "validation and test sets are all of them: it is tested whether they were learned, not "
        "whether others would be."
        for facts in result.tasks
        if facts.shared
    ]


def short_cell(result: BenchmarkResult, cell: str) -> str:
    """Return a cell's name without its folders."""
    return short_names(dict.fromkeys(model.cell for model in result.models)).get(cell, cell)
