"""The log of a watched training: text lines that grow while it runs, and the record they make.

The first line is a header with the settings and the provenance, each further one a sample with
the findings that were new then; all are strict JSON. A training that is resumed adds a header.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from gradflow.records.base import Json
from gradflow.records.watch import FlowFinding, FlowSample, WatchRun

LOG_NAME = "watch.jsonl"
_SCHEMA = "gradflow/watch-log/1"
_CUT = "The last line of the log was cut off while it was written; it is left out."


def header_line(config: Mapping[str, Any], environment: Mapping[str, Any]) -> str:
    """Return the header: settings and provenance, both plain JSON."""
    return _line({"schema": _SCHEMA, "config": dict(config), "environment": dict(environment)})


def sample_line(sample: FlowSample, findings: Iterable[FlowFinding] = ()) -> str:
    """Return the line of a sample, with what was newly found in it."""
    found = [finding.to_json() for finding in findings]
    return _line({"sample": sample.to_json(), "findings": found})


def is_log(first_line: str) -> bool:
    """Return whether a file that begins with this line is a log of a watched training."""
    return _parsed(first_line).get("schema") == _SCHEMA


def run_from_lines(lines: Iterable[str]) -> WatchRun:
    """Return the training that a log records.

    A line that was cut off, as the last one is where the program was killed, is left out with a
    note. What a resumed training repeats replaces what was there.

    Raises:
        ValueError: the first line is no header of a log.

    >>> lines = [header_line({"every": 10}, {}), sample_line(FlowSample(0, ()))[:20]]
    >>> run_from_lines(lines).notes
    ('The last line of the log was cut off while it was written; it is left out.',)
    """
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not numbered or not is_log(numbered[0][1]):
        raise ValueError(f"its first line is no header of a log ({_SCHEMA})")
    reading = _Reading()
    for number, line in numbered:
        try:
            reading.take(json.loads(line))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            last = number == numbered[-1][0]
            reading.notes.append(_CUT if last else f"Line {number} is damaged; it is left out.")
    return reading.run()


class _Reading:
    """What was read so far."""

    def __init__(self) -> None:
        self.header: Json = {}
        self.samples: list[FlowSample] = []
        self.findings: list[FlowFinding] = []
        self.notes: list[str] = []
        self._resumed = False

    def take(self, document: Json) -> None:
        """Add what a line holds."""
        if "schema" in document:
            self._resumed = bool(self.header)
            self.header = {"config": document["config"], "environment": document["environment"]}
            return
        sample = FlowSample.from_json(document["sample"])
        findings = [FlowFinding(**entry) for entry in document["findings"]]
        if self._resumed:
            self._resumed = False
            self.notes.append(f"The training was resumed at update {sample.update:,} or before.")
            self.samples = [kept for kept in self.samples if kept.update < sample.update]
        self.samples.append(sample)
        self.findings += findings

    def run(self) -> WatchRun:
        """Return the record of all that was read."""
        return WatchRun(
            samples=tuple(self.samples),
            findings=tuple(self.findings),
            notes=tuple(self.notes),
            **self.header,
        )


def _line(document: Json) -> str:
    return json.dumps(document, allow_nan=False, separators=(",", ":")) + "\n"


def _parsed(line: str) -> Json:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
