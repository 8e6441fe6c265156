"""How samples come before a person's eyes: on a live panel, or as lines of findings."""

from __future__ import annotations

from collections.abc import Sequence

from gradflow.present.watch_panel import LivePanel, wants_panel
from gradflow.present.watch_words import finding_text
from gradflow.records.watch import FlowFinding, FlowSample
from gradflow.watching.reporting import SpokenFindings


class Shown:
    """A panel where it is wanted; elsewhere findings go to the logger "gradflow".

    Args:
        panel: whether it is wanted; None asks anew with each sample, since a loop makes its
            progress bar after the watch has begun.
    """

    name = "the live panel"

    def __init__(self, panel: bool | None = None) -> None:
        self._wanted = panel
        self._panel = LivePanel()
        self._spoken = SpokenFindings(finding_text)

    def take(
        self, sample: FlowSample, present: Sequence[FlowFinding], told: Sequence[FlowFinding]
    ) -> None:
        """Show a sample."""
        if wants_panel() if self._wanted is None else self._wanted:
            self._panel.take(sample, present, told)
        else:
            self._panel.close()
            self._spoken.take(sample, present, told)

    def close(self) -> None:
        """Leave the panel as it was last."""
        self._panel.close()
