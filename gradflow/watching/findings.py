"""What a sample of a running training shows, as findings; each is told once.

The codes and their meanings are those of `gradflow inspect` (`gradflow explain GF101`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gradflow.records.inspect import SEVERITIES
from gradflow.records.watch import OF_MODULES, FlowFinding, FlowLayer, FlowSample
from gradflow.watching.layer_findings import layer_findings
from gradflow.watching.vanishing import vanishing_findings

Key = tuple[str, str | None, str | None, str | None]


class FindingMemory:
    """Keeps what was told: a finding of one place is told again only when it has become graver.

    Args:
        needs_lag: how many steps back the gradient must reach, None where nobody says.
    """

    def __init__(self, needs_lag: int | None = None) -> None:
        self.needs_lag = needs_lag
        self._told: dict[Key, int] = {}

    def new_of(self, sample: FlowSample) -> tuple[FlowFinding, ...]:
        """Return the findings of a sample that were not told before."""
        return self.new_among(sample_findings(sample, self.needs_lag))

    def new_among(self, findings: Iterable[FlowFinding]) -> tuple[FlowFinding, ...]:
        """Return those that were not told before, and take them as told."""
        return tuple(finding for finding in findings if self._is_new(finding))

    def remember(self, findings: Iterable[FlowFinding]) -> None:
        """Take findings as told, such as those of a log that is continued."""
        self.new_among(findings)

    def _is_new(self, finding: FlowFinding) -> bool:
        place = finding.layer
        if finding.code in OF_MODULES:
            place = (place or "").rpartition("layer ")[0]
        key = (finding.code, place, finding.direction, finding.gate)
        gravity = SEVERITIES.index(finding.severity)
        if self._told.get(key, -1) >= gravity:
            return False
        self._told[key] = gravity
        return True


def sample_findings(sample: FlowSample, needs_lag: int | None = None) -> tuple[FlowFinding, ...]:
    """Return all that a sample shows, the gravest first.

    Vanishing is judged for all layers of a module together, since one that remembers is enough:
    against `needs_lag`, or, without it, by whether the gradient reaches the first step of the data.

    >>> from gradflow.records.watch import FlowLayer, FlowSample
    >>> logs = tuple(-1.0 * distance for distance in range(60))
    >>> layer = FlowLayer("rnn", "lstm", 0, "forward", 8, 60, tuple(range(60)), logs, horizon=3.0)
    >>> [finding.code for finding in sample_findings(FlowSample(0, (layer,)))]
    ['GF101']
    """
    found = [finding for layer in sample.layers for finding in layer_findings(layer, needs_lag)]
    for group in _groups(sample.layers):
        found += vanishing_findings(group, needs_lag)
    found.sort(key=lambda finding: -SEVERITIES.index(finding.severity))
    return tuple(replace(finding, update=sample.update) for finding in found)


def _groups(layers: Sequence[FlowLayer]) -> list[list[FlowLayer]]:
    groups: dict[tuple[str, str, int], list[FlowLayer]] = {}
    for layer in layers:
        groups.setdefault((layer.name, layer.direction, layer.call), []).append(layer)
    return list(groups.values())
