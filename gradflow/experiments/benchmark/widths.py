"""Fair widths: how wide each cell is at the same width, and at the nearest parameter count."""

from __future__ import annotations

from dataclasses import dataclass

from gradflow.errors import CellLoadError, GradflowError, SettingError
from gradflow.experiments.benchmark.networks import FUSED, encoded_width, make_network
from gradflow.experiments.benchmark.tasks import SequenceTask
from gradflow.experiments.parameter_counts import total_parameters
from gradflow.experiments.params import read_match
from gradflow.experiments.width_match import match_width
from gradflow.records.params import Architecture


@dataclass(frozen=True)
class Counting:
    """What the parameters of a network depend on, beside its cell and width."""

    task: SequenceTask
    embedding: int

    @property
    def encoder(self) -> int:
        """The parameters of the encoder: a row for each token."""
        return (self.task.tokens or 0) * self.embedding

    def architecture(self, cell: str, hidden: int) -> Architecture:
        """Return the network without its encoder."""
        width = encoded_width(self.task, self.embedding)
        return Architecture(cell, width, hidden, output_size=self.task.outputs)

    def total(self, cell: str, hidden: int) -> int:
        """Return all parameters, encoder and head included.

        torch's cells by formula (two bias vectors for each gate); others are built and counted.
        """
        if cell in FUSED:
            return self.encoder + total_parameters(self.architecture(cell, hidden), biases=2)
        network = make_network(self.task, cell=cell, hidden=hidden, embedding=self.embedding)
        return network.parameter_count


def match_target(
    counting: Counting, cells: tuple[str, ...], *, hidden: int, match: str | None
) -> int:
    """Return the number of parameters that widths are matched to.

    Args:
        counting: encoder, head and input.
        cells: those that are compared.
        hidden: their common width.
        match: "lstm:64", a number, or None for the cell that has most at the common width.

    Raises:
        SettingError: `match` is neither, or below 1.
    """
    if match is None:
        return max(counting.total(cell, hidden) for cell in cells)
    try:
        asked = read_match(match)
    except SettingError as problem:
        raise SettingError(f"--{problem}") from None
    return asked if isinstance(asked, int) else counting.total(*asked)


def nearest_width(counting: Counting, cell: str, target: int) -> int:
    """Return the width whose total is nearest to the target, over all integers.

    Raises:
        CellLoadError: a user's cell whose parameters do not grow with the width it is asked for,
            or that cannot be made at some width.
    """
    template = counting.architecture(cell, 1)
    if cell in FUSED:
        wanted = max(1, target - counting.encoder)
        return match_width(wanted, template).architecture.hidden_size
    try:
        if counting.total(cell, 2) <= counting.total(cell, 1):
            raise CellLoadError(
                f"{cell} has the same parameters at every width that it is asked for, so there is "
                "no width to match."
            )
        found = match_width(
            target, template, biases=None, count=lambda one: counting.total(cell, one.hidden_size)
        )
    except GradflowError as problem:
        raise CellLoadError(f"no width of {cell} could be matched: {problem}") from problem
    return found.architecture.hidden_size
