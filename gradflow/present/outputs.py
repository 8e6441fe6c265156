"""What every result can be shown as, in one form that all commands share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.figure import Figure

from gradflow.present.tables import TextTable
from gradflow.present.theme import FigureFormat, alt_text, figure_bytes

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Outputs:
    """A result, ready to be shown and stored.

    `table` is a rich renderable (with its notes under it). `tables` are CSV tables, name to rows,
    as `gradflow.store.save_run` takes them; the first is the one that `--format csv` prints.
    `figures` are name to figure, each with its alt text (`theme.alt_text`). `formats` are texts
    of other formats that `--format` takes for this command, by name.
    """

    table: TextTable
    tables: Mapping[str, Sequence[Row]]
    figures: Mapping[str, Figure] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know beside the numbers, such as why a norm is zero."""
        return self.table.notes

    @property
    def rows(self) -> Sequence[Row]:
        """The rows of the main CSV table."""
        return next(iter(self.tables.values()), ())

    @property
    def alts(self) -> dict[str, str]:
        """Figure name to its alt text."""
        return {name: alt_text(figure) for name, figure in self.figures.items()}

    def figure_files(self, formats: Iterable[FigureFormat] = ("png", "svg")) -> dict[str, bytes]:
        """Return file name (`decay.png`) to bytes, as `gradflow.store.save_run` takes them."""
        return {
            f"{name}.{ending}": figure_bytes(figure, ending)
            for name, figure in self.figures.items()
            for ending in formats
        }
