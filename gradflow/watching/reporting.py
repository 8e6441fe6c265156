"""What becomes of a sample: it is judged, and handed to whoever receives it.

No receiver can stop a training, or keep a sample from the others: one that fails is warned about
once and left out from then on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from gradflow.records.inspect import SEVERITIES
from gradflow.records.watch import FlowFinding, FlowSample
from gradflow.watching.faults import warn
from gradflow.watching.findings import FindingMemory, sample_findings
from gradflow.watching.log import FlowLog
from gradflow.watching.sinks import sink_of

LOGGER = logging.getLogger("gradflow")
_LEVELS = dict(zip(SEVERITIES, (logging.INFO, logging.WARNING, logging.ERROR), strict=True))


class Receiver(Protocol):
    """Whoever is handed samples; `name` is what a warning calls it."""

    name: str

    def take(
        self, sample: FlowSample, present: Sequence[FlowFinding], told: Sequence[FlowFinding]
    ) -> None:
        """Receive a sample, all that it shows, and what is new in that."""

    def close(self) -> None:
        """Receive no more."""


class Reporter:
    """Judges each sample and hands it on; call it with a sample, close it at the end.

    Args:
        receivers: whom to hand it to, in order.
        needs_lag: how many steps back the gradient must reach, None where nobody says.
        known: findings that were told before, such as those of a log that is continued.
    """

    def __init__(
        self,
        receivers: Iterable[Receiver],
        *,
        needs_lag: int | None = None,
        known: Iterable[FlowFinding] = (),
    ) -> None:
        self._at_start: list[FlowFinding] = []
        self._receivers = list(receivers)
        self._memory = FindingMemory(needs_lag)
        self._memory.remember(known)
        self.findings: list[FlowFinding] = []

    def begin_with(self, findings: Iterable[FlowFinding]) -> None:
        """Take findings that are not of a sample; they are told with the next one."""
        self._at_start += findings

    def __call__(self, sample: FlowSample) -> None:
        """Take a sample."""
        present = sample_findings(sample, self._memory.needs_lag)
        begun = [replace(finding, update=sample.update) for finding in self._at_start]
        self._at_start.clear()
        told = self._memory.new_among([*begun, *present])
        self.findings += told
        for receiver in tuple(self._receivers):
            if not _succeeds(receiver, lambda each: each.take(sample, present, told)):
                self._receivers.remove(receiver)
                _succeeds(receiver, lambda each: each.close(), quiet=True)

    def close(self) -> None:
        """Close every receiver; a second time does nothing."""
        receivers, self._receivers = self._receivers, []
        for receiver in receivers:
            _succeeds(receiver, lambda each: each.close())


class LogReceiver:
    """Writes samples to the log of a run folder."""

    def __init__(self, log: FlowLog) -> None:
        self.name = f"the log {str(log.path)!r}"
        self._log = log

    def take(
        self, sample: FlowSample, present: Sequence[FlowFinding], told: Sequence[FlowFinding]
    ) -> None:
        """Append the sample with what is new in it."""
        del present
        self._log.write(sample, told)

    def close(self) -> None:
        """Close the file."""
        self._log.close()


class SinkReceiver:
    """Sends samples to somebody else's logger, which stays open: it is the user's.

    Args:
        receiver: see `gradflow.watching.sinks.sink_of`.

    Raises:
        SettingError: it can receive nothing.
    """

    def __init__(self, receiver: Any) -> None:
        self.name = f"the sink {type(receiver).__name__}"
        self._send = sink_of(receiver)

    def take(
        self, sample: FlowSample, present: Sequence[FlowFinding], told: Sequence[FlowFinding]
    ) -> None:
        """Send the sample's numbers."""
        del present, told
        self._send(sample)

    def close(self) -> None:
        """Leave it open."""


class SpokenFindings:
    """Says what is new through Python's logging, under the name "gradflow".

    Args:
        text_of: a finding as a line.
    """

    name = "the logger 'gradflow'"

    def __init__(self, text_of: Callable[[FlowFinding], str]) -> None:
        self._text_of = text_of

    def take(
        self, sample: FlowSample, present: Sequence[FlowFinding], told: Sequence[FlowFinding]
    ) -> None:
        """Say each finding at the level of its severity."""
        del sample, present
        for finding in told:
            LOGGER.log(_LEVELS[finding.severity], "%s", self._text_of(finding))

    def close(self) -> None:
        """Say nothing more."""


def _succeeds(
    receiver: Receiver, action: Callable[[Receiver], None], *, quiet: bool = False
) -> bool:
    try:
        action(receiver)
    except Exception as problem:
        if not quiet:
            reason = f"{type(problem).__name__}: {problem}"
            warn(
                f"gradflow.watch: {receiver.name} failed and is left out from now on; the training "
                f"goes on. {reason}"
            )
        return False
    return True
