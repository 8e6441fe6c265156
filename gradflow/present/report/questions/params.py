"""The words of a report around `gradflow params`."""

from __future__ import annotations

from collections.abc import Sequence

from gradflow.present.cell_titles import cell_title
from gradflow.present.numbers import counted
from gradflow.present.report.formula import row
from gradflow.present.report.question import Question, Statement
from gradflow.records.params import ParameterCount, ParamsResult, WidthMatch


def params_findings(result: ParamsResult) -> Sequence[str]:
    """Return each network's parameters as built, then the matched widths."""
    sentences = [f"Parameters as built: {'; '.join(map(_count, result.counts))}."]
    if result.matches:
        matched = "; ".join(map(_match, result.matches))
        sentences.append(f"Equally large ({result.matches[0].target:,} parameters): {matched}.")
    return sentences


def _count(count: ParameterCount) -> str:
    network = count.architecture
    return f"{cell_title(network.cell)} of {counted(network.hidden_size, 'unit')} {count.built:,}"


def _match(match: WidthMatch) -> str:
    network = match.architecture
    return (
        f"{cell_title(network.cell)} of {counted(network.hidden_size, 'unit')} "
        f"({match.difference:+,})"
    )


PARAMS = Question(
    command="params",
    title="How many parameters has each network, and which width matches another's?",
    statements=(
        Statement(
            (row("G ( H D + H H + b H )"),),
            "Parameters of a layer: G is 4 blocks of rows in an LSTM, 3 in a GRU, 1 in an RNN; D "
            " inputs, H hidden units, b is 2 bias vectors in torch and 1 in textbooks.",
        ),
    ),
    findings=params_findings,
    shows="What a formula says, and what torch's own module has: equal, or a check fails.",
    shows_not="Equally many parameters are not equally much memory: that is the gates' matter.",
    units="Parameters and multiply-adds are counts, for one sample and one step; memory is that of "
    "the weights in the dtype of the settings.",
    captions={"params": "A bar for each network, cut into what its parameters belong to."},
)
