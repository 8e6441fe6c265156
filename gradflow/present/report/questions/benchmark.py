"""The words of a report around `gradflow benchmark`."""

from __future__ import annotations

from collections.abc import Sequence

from gradflow.present import benchmark_words
from gradflow.present.report.formula import frac, row
from gradflow.present.report.question import Question, Statement
from gradflow.records.benchmark import BenchmarkResult


def benchmark_findings(result: BenchmarkResult) -> Sequence[str]:
    """Return who learned at which delay, with the task, and what no memory at all reaches."""
    task = benchmark_words.task_words(result)
    return [
        f"{task[:1].upper()}{task[1:]}. {benchmark_words.finding(result)}",
        *benchmark_words.baseline_sentences(result),
    ]


BENCHMARK = Question(
    command="benchmark",
    title="Which recurrent cell learns to carry information across a delay, at what cost?",
    statements=(
        Statement(
            (row("L_0 =", frac("N ln K", "T + 2 N")),),
            "The loss of a delayed copy when nothing was learned: N symbols out of K, after a "
            "delay of T steps. A loss that stays there means no memory.",
        ),
    ),
    findings=benchmark_findings,
    shows="Accuracy on test sequences that were never trained on, for every cell at the same "
    "width and at the same number of parameters, each at its best learning rate.",
    shows_not="Other tasks and longer trainings may rank the cells otherwise; a cell that did not "
    "learn within these updates might in more. Times are those of one machine.",
    units="Delays T in steps, losses in nats (mean squared error for sums), times in seconds; "
    "ranges are over seeds.",
    captions={
        "learning": "Learning curves: thick lines are means over seeds, thin ones the seeds.",
        "accuracy": "Test accuracy by delay, beside what a model without memory reaches.",
        "cost": "Test accuracy against what it costs.",
        "gradient": "Gradient norms of the loss at every step, before and after training.",
    },
)
