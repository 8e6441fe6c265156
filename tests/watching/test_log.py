"""The log of a watched training: nothing that was acknowledged is lost, whatever ends the run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gradflow.errors import RunFolderError
from gradflow.records.watch import FlowFinding
from gradflow.store import load_log, load_result
from gradflow.watching.log import FlowLog
from tests.data.watched_runs import flow_layer, flow_sample

_ENDLESS = """
import itertools, pathlib, sys
from gradflow.watching.log import FlowLog
from tests.data.watched_runs import flow_sample
log = FlowLog(pathlib.Path(sys.argv[1]), config={"every": 1}, environment={})
for update in itertools.count():
    log.write(flow_sample(update))
    print(update, flush=True)
"""


def _log(folder: Path) -> FlowLog:
    return FlowLog(folder, config={"every": 5}, environment={"gradflow": "0"})


def _finding(update: int) -> FlowFinding:
    return FlowFinding("GF101", "error", "rnn, layer 0", "forward", None, 3.0, "m", "a", update)


def test_a_log_holds_one_header_line_and_one_line_a_sample(tmp_path: Path):
    """Every line is a JSON document of its own."""
    log = _log(tmp_path / "run")
    log.write(flow_sample(0), (_finding(0),))
    log.write(flow_sample(5))
    log.close()
    lines = [json.loads(line) for line in log.path.read_text().splitlines()]
    assert [sorted(line) for line in lines] == [
        ["config", "environment", "schema"],
        ["findings", "sample"],
        ["findings", "sample"],
    ]


def test_a_log_reads_back_as_it_was_written(tmp_path: Path):
    """Samples to the last digit, findings, settings."""
    samples = [flow_sample(0, flow_layer(1 / 3)), flow_sample(5, flow_layer(0.7, 17))]
    log = _log(tmp_path)
    log.write(samples[0], (_finding(0),))
    log.write(samples[1])
    run = load_log(tmp_path)
    assert run.samples == tuple(samples)
    assert run.findings == (_finding(0),)
    assert run.config == {"every": 5}
    assert load_result(log.path) == load_result(tmp_path) == run


def test_each_line_is_on_its_way_before_the_next_update_begins(tmp_path: Path):
    """Another process reads the sample at once: nothing waits in a buffer of ours."""
    log = _log(tmp_path)
    for update in range(3):
        log.write(flow_sample(update))
        assert [sample.update for sample in load_log(tmp_path).samples] == list(range(update + 1))


def test_a_killed_program_loses_no_sample_that_was_acknowledged(tmp_path: Path):
    """SIGKILL in the middle of writing."""
    with subprocess.Popen(
        [sys.executable, "-c", _ENDLESS, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as program:
        assert program.stdout is not None
        acknowledged = [int(program.stdout.readline()) for _ in range(40)]
        program.kill()
        acknowledged += [int(line) for line in program.stdout.read().split()]
    updates = [sample.update for sample in load_log(tmp_path).samples]
    assert updates[: len(acknowledged)] == acknowledged
    assert len(updates) <= len(acknowledged) + 1


@pytest.mark.parametrize("kept", [1, 7, -2, -1])
def test_a_line_that_was_cut_off_is_passed_over_with_a_note(tmp_path: Path, kept: int):
    """Wherever the last line ends, the samples before it are there."""
    log = _log(tmp_path)
    for update in range(3):
        log.write(flow_sample(update))
    *whole, last = log.path.read_text().splitlines(keepends=True)
    log.path.write_text("".join(whole) + last[:kept].rstrip("}"))
    run = load_log(tmp_path)
    assert [sample.update for sample in run.samples] == [0, 1]
    assert run.notes == (
        "The last line of the log was cut off while it was written; it is left out.",
    )


def test_a_resumed_training_goes_on_in_its_log(tmp_path: Path):
    """What it repeats since its checkpoint replaces what was there; half a line is passed over."""
    first = _log(tmp_path)
    for update in (0, 5, 10, 15):
        first.write(flow_sample(update, flow_layer(0.5)), (_finding(update),) if not update else ())
    first.close()
    with first.path.open("a") as file:
        file.write('{"sample": {"upd')
    second = _log(tmp_path)
    assert second.earlier is not None
    assert second.earlier.findings == (_finding(0),)
    for update in (10, 15, 20):
        second.write(flow_sample(update, flow_layer(0.9)))
    run = load_log(tmp_path)
    assert [sample.update for sample in run.samples] == [0, 5, 10, 15, 20]
    assert [sample.layers[0].gate_means["forget"] for sample in run.samples] == [
        0.5, 0.5, 0.9, 0.9, 0.9,
    ]  # fmt: skip
    assert run.findings == (_finding(0),)
    assert run.notes == (
        "Line 6 is damaged; it is left out.",
        "The training was resumed at update 10 or before.",
    )


def test_two_trainings_do_not_write_one_log(tmp_path: Path):
    """The second is told; after the first has ended it may go on."""
    first, second = _log(tmp_path), _log(tmp_path)
    first.write(flow_sample(0))
    with pytest.raises(RunFolderError, match="another watch writes"):
        second.write(flow_sample(0))
    first.write(flow_sample(5))
    first.close()
    _log(tmp_path).write(flow_sample(10))
    assert [sample.update for sample in load_log(tmp_path).samples] == [0, 5, 10]


def test_another_process_does_not_write_the_same_log(tmp_path: Path):
    """Two trainings were started with one folder."""
    with subprocess.Popen(
        [sys.executable, "-c", _ENDLESS, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        try:
            with pytest.raises(RunFolderError, match="another watch writes"):
                _log(tmp_path).write(flow_sample(0))
        finally:
            program.kill()
    resumed = _log(tmp_path)
    resumed.write(flow_sample(0))
    assert [sample.update for sample in load_log(tmp_path).samples] == [0]


def test_a_log_without_samples_leaves_nothing_behind(tmp_path: Path):
    """A training that ends before its first sample makes no folder."""
    log = _log(tmp_path / "run")
    log.close()
    assert not (tmp_path / "run").exists()


def test_a_file_of_that_name_that_is_no_log_is_left_alone(tmp_path: Path):
    """It is somebody else's."""
    (tmp_path / "watch.jsonl").write_text("mine\n")
    with pytest.raises(RunFolderError, match="Name another folder"):
        _log(tmp_path)
    assert (tmp_path / "watch.jsonl").read_text() == "mine\n"


def test_what_is_no_log_is_refused_by_name(tmp_path: Path):
    """A missing file, an empty one, another JSON."""
    with pytest.raises(RunFolderError, match=r"there is none at .*watch\.jsonl"):
        load_log(tmp_path)
    other = tmp_path / "other.jsonl"
    for text in ("", '{"schema": "gradflow/decay/1"}\n', "\x00\xff\n"):
        other.write_text(text)
        for load in (load_log, load_result):
            with pytest.raises(
                RunFolderError, match=r"^cannot read .* its first line is no header"
            ):
                load(other)
