"""What becomes of a sample: no receiver stops the training or keeps it from the others."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from gradflow.errors import RunFolderError
from gradflow.records.watch import FlowFinding, FlowSample
from gradflow.store import load_log
from gradflow.watching.faults import WatchWarning
from gradflow.watching.log import FlowLog
from gradflow.watching.reporting import LogReceiver, Reporter, SinkReceiver, SpokenFindings
from tests.data.watched_runs import flow_layer, flow_sample


class Kept:
    """Keeps what it receives."""

    name = "the test"

    def __init__(self, fails_at: int | None = None) -> None:
        self.updates: list[int] = []
        self.present: list[list[str]] = []
        self.told: list[list[str]] = []
        self.closed = 0
        self._fails_at = fails_at

    def take(
        self, sample: FlowSample, present: Sequence[FlowFinding], told: Sequence[FlowFinding]
    ) -> None:
        if sample.update == self._fails_at:
            raise OSError("no space left")
        self.updates.append(sample.update)
        self.present.append([finding.code for finding in present])
        self.told.append([finding.code for finding in told])

    def close(self) -> None:
        self.closed += 1


def test_every_sample_is_judged_and_each_finding_told_once():
    """What is present is present in each sample; what is new is so once."""
    kept = Kept()
    reporter = Reporter([kept])
    for update in range(3):
        reporter(flow_sample(update, flow_layer(0.1, 60)))
    assert kept.present == [["GF101"]] * 3
    assert kept.told == [["GF101"], [], []]
    assert [finding.code for finding in reporter.findings] == ["GF101"]


def test_the_issue_is_told_within_the_first_sample_and_health_is_not():
    """f = 0.1 over 60 steps against f = 0.9 over 20."""
    ill, well = Kept(), Kept()
    Reporter([ill])(flow_sample(0, flow_layer(0.1, 60)))
    Reporter([well])(flow_sample(0, flow_layer(0.9, 20)))
    assert (ill.told, well.told) == ([["GF101"]], [[]])


def test_what_was_found_at_the_start_is_told_with_the_first_sample():
    """With its update, once, and not as a state of the samples."""
    kept = Kept()
    twice = FlowFinding("GF201", "warning", "rnn, layer 0", "forward", "forget", 2.0, "m", "a")
    reporter = Reporter([kept])
    reporter.begin_with([twice])
    for update in (7, 8):
        reporter(flow_sample(update))
    assert kept.told == [["GF201"], []]
    assert kept.present == [[], []]
    assert reporter.findings[0].update == 7


def test_a_receiver_that_fails_is_warned_about_once_and_left_out():
    """The others go on receiving, and so does the training."""
    broken, kept = Kept(fails_at=1), Kept()
    reporter = Reporter([broken, kept])
    reporter(flow_sample(0))
    with pytest.warns(WatchWarning, match=r"the test failed and is left out .* no space left"):
        reporter(flow_sample(1))
    for update in (2, 3):
        reporter(flow_sample(update))
    assert broken.updates == [0]
    assert broken.closed == 1
    assert kept.updates == [0, 1, 2, 3]


def test_closing_closes_every_receiver_once():
    """Whoever closes twice has done so once."""
    kept = [Kept(), Kept()]
    reporter = Reporter(kept)
    reporter.close()
    reporter.close()
    assert [each.closed for each in kept] == [1, 1]


def test_findings_are_spoken_at_the_level_of_their_severity(caplog: pytest.LogCaptureFixture):
    """A handler of the user's decides where they go."""
    reporter = Reporter([SpokenFindings(lambda finding: f"{finding.code}!")], needs_lag=60)
    with caplog.at_level(logging.INFO, logger="gradflow"):
        reporter(flow_sample(0, flow_layer(0.1, 60, saturated_fraction={"input": 1.0})))
        reporter(flow_sample(1, flow_layer(0.1, 60, saturated_fraction={"input": 1.0})))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("ERROR", "GF101!"),
        ("WARNING", "GF204!"),
    ]


def test_log_and_sinks_receive_the_same_samples(tmp_path: Path):
    """One on the disk, one in a list."""
    received: list[FlowSample] = []
    log = FlowLog(tmp_path / "run", config={}, environment={})
    reporter = Reporter([LogReceiver(log), SinkReceiver(received.append)])
    for update in range(3):
        reporter(flow_sample(update, flow_layer(0.1, 60)))
    reporter.close()
    run = load_log(tmp_path / "run")
    assert run.samples == tuple(received)
    assert [finding.code for finding in run.findings] == ["GF101"]


def test_a_disk_that_fails_costs_the_log_and_not_the_training(tmp_path: Path):
    """A file came in the way of the folder after the watch had begun."""
    log = FlowLog(tmp_path / "run" / "inner", config={}, environment={})
    (tmp_path / "run").write_text("")
    kept = Kept()
    reporter = Reporter([LogReceiver(log), kept])
    with pytest.warns(WatchWarning, match=r"the log .* failed and is left out"):
        reporter(flow_sample(0))
    assert kept.updates == [0]


def test_a_folder_that_cannot_be_is_refused_before_the_training_begins(tmp_path: Path):
    """A file in the way is told at once, not after an hour."""
    (tmp_path / "run").write_text("")
    with pytest.raises(RunFolderError, match="Name another folder"):
        FlowLog(tmp_path / "run" / "inner", config={}, environment={})
