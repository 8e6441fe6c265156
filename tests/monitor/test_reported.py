"""`gradflow.watch` around a real training: what is told, kept, shown, and left behind."""

from __future__ import annotations

import io
import json
import logging
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from rich.console import Console
from tensorboardX import SummaryWriter

import gradflow
from gradflow.errors import CellLoadError, RunFolderError, SettingError
from gradflow.monitor import reported, shown
from gradflow.present.watch_panel import LivePanel
from gradflow.records.watch import FlowSample
from gradflow.store import load_log
from gradflow.watching.faults import WatchWarning
from tests.monitor.forgetful import Forgetful, training

_KILLED = """
import pathlib, sys
import gradflow
from tests.monitor.forgetful import Forgetful, training
model = Forgetful(0.5)
flow = gradflow.watch(model, every=1, out=sys.argv[1])
flow.subscribe(lambda sample: print(sample.update, flush=True))
for _ in training(model, 5, 10**9):
    pass
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _watched(forget: float, steps: int, updates: int = 3, **how) -> reported.ReportedWatch:
    model = Forgetful(forget)
    with gradflow.watch(model, **{"every": 1, "out": False, **how}) as flow:
        list(training(model, steps, updates))
    return flow


def test_a_label_that_the_gradient_does_not_reach_is_told_in_the_first_sample():
    """f = 0.1 and 60 steps: 3 to 6 steps are reached, by the recurrent weights."""
    flow = _watched(0.1, 60)
    (finding,) = flow.findings
    assert (finding.code, finding.severity, finding.update) == ("GF101", "warning", 0)
    assert 3 <= finding.value <= 6
    assert "the first step is 59 steps back" in finding.message


@pytest.mark.parametrize(("forget", "steps"), [(0.9, 20), (0.99, 60)])
def test_a_label_that_the_gradient_reaches_is_no_finding(forget: float, steps: int):
    """An open forget gate is noted, and is no illness."""
    found = _watched(forget, steps).findings
    assert [finding for finding in found if finding.severity != "info"] == []


def test_against_a_need_the_same_training_is_an_error():
    """Half of the gradient a step is lost, and 40 steps are needed of 20 that are reached."""
    (finding,) = _watched(0.5, 50, needs_lag=40).findings
    assert (finding.code, finding.severity) == ("GF101", "error")
    assert "40 steps back are needed" in finding.message


def test_samples_stand_in_the_run_folder_as_they_were_measured():
    """And the folder is what `load_result` and the command read."""
    flow = _watched(0.1, 30, updates=5, every=2, out="run")
    assert flow.folder == Path("run")
    run = load_log("run")
    assert run.samples == tuple(flow.samples)
    assert [sample.update for sample in run.samples] == [0, 2, 4]
    assert run.findings == tuple(flow.findings)
    assert run.config == {"every": 2, "needs_lag": None}
    assert run.environment["model"] == "Forgetful"
    assert run.environment["dtype"] == "float32"
    assert gradflow.load_result("run") == run


def test_without_a_name_the_folder_is_called_by_the_start():
    """Two trainings of the same settings do not mix."""
    flows = [_watched(0.9, 5, updates=1, out=None) for _ in range(2)]
    folders = [flow.folder for flow in flows]
    assert len(set(folders)) == 2
    for folder in folders:
        assert folder.parent == Path("runs")
        assert folder.name.startswith("watch-2")
        assert [path.name for path in folder.iterdir()] == ["watch.jsonl"]


def test_nothing_is_written_where_that_is_wished_or_nothing_was_sampled():
    """`out=False`, or a training that ends before its first update."""
    assert _watched(0.9, 5).folder is None
    with gradflow.watch(Forgetful(0.9)):
        pass
    assert list(Path().iterdir()) == []


def test_a_resumed_training_goes_on_counting_in_its_log():
    """By itself after the last sample, or from the update that it is told."""
    _watched(0.1, 60, updates=4, out="run")
    more = _watched(0.1, 60, updates=2, out="run")
    assert [sample.update for sample in more.samples] == [4, 5]
    assert more.findings == []  # it was told before
    again = _watched(0.1, 60, updates=2, out="run", first_update=3)
    assert [sample.update for sample in again.samples] == [3, 4]
    run = load_log("run")
    assert [sample.update for sample in run.samples] == [0, 1, 2, 3, 4]
    assert [finding.update for finding in run.findings] == [0]


def test_a_killed_training_has_kept_every_sample_that_was_acknowledged():
    """SIGKILL in the middle of a training."""
    root = Path(__file__).parents[2]
    arguments = [sys.executable, "-c", _KILLED, str(Path.cwd() / "run")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, cwd=root) as program:
        assert program.stdout is not None
        acknowledged = [int(program.stdout.readline()) for _ in range(20)]
        program.kill()
        acknowledged += [int(line) for line in program.stdout.read().split()]
    updates = [sample.update for sample in load_log("run").samples]
    assert updates[: len(acknowledged)] == acknowledged


def test_watching_changes_no_weight_whoever_receives_the_samples():
    """Bit for bit, with log, sinks and findings."""
    plain, watched = Forgetful(0.1), Forgetful(0.1)
    list(training(plain, 20, 5))
    with (
        SummaryWriter("board") as writer,
        gradflow.watch(watched, every=2, out="run", sinks=writer) as flow,
    ):
        list(training(watched, 20, 5))
    assert len(flow.samples) == 3
    for name, weight in plain.state_dict().items():
        assert torch.equal(weight, watched.state_dict()[name])


def test_every_sink_receives_every_sample():
    """A writer and a function, one or many."""
    received: list[FlowSample] = []
    flow = _watched(0.5, 5, sinks=received.append)
    assert received == flow.samples
    others: list[FlowSample] = []
    flow = _watched(0.5, 5, sinks=[received.append, others.append])
    assert others == flow.samples


def test_a_sink_that_fails_costs_itself_alone():
    """One warning, and the training and the log go on."""

    def fails(sample: FlowSample) -> None:
        raise ConnectionError("the server is gone")

    with pytest.warns(WatchWarning, match="the server is gone") as caught:
        flow = _watched(0.9, 5, out="run", sinks=fails)
    assert len(caught) == 1
    assert len(load_log("run").samples) == len(flow.samples) == 3


def test_findings_are_told_by_logging_where_there_is_no_panel(caplog: pytest.LogCaptureFixture):
    """Once, and where the program's other messages go."""
    with caplog.at_level(logging.INFO, logger="gradflow"):
        _watched(0.1, 60)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("update 0: GF101 warning [rnn, layer 0]: The gradient")


def test_a_panel_shows_the_last_sample_and_gives_the_terminal_back(
    monkeypatch: pytest.MonkeyPatch,
):
    """Also where the loop raises."""
    screen = io.StringIO()
    console = Console(file=screen, width=80, force_terminal=True, legacy_windows=False)
    monkeypatch.setattr(shown, "LivePanel", lambda: LivePanel(console))
    flow = gradflow.watch(model := Forgetful(0.1), every=1, out=False, panel=True)
    with pytest.raises(KeyboardInterrupt), flow:
        _stopped_at(3, training(model, 60, 9))
    assert flow.closed
    text = screen.getvalue()
    assert "vanishes" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_a_progress_bar_that_comes_later_gets_the_terminal(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """A loop makes its bar after the watch has begun; findings then go to the logger."""
    screen = io.StringIO()
    console = Console(file=screen, width=80, force_terminal=True, legacy_windows=False)
    monkeypatch.setattr(shown, "LivePanel", lambda: LivePanel(console))
    wanted = iter([True, False, False])
    monkeypatch.setattr(shown, "wants_panel", lambda: next(wanted))
    _watched(0.1, 60)
    text = screen.getvalue()
    assert "update 0" in text
    assert "update 1" not in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1


def test_what_the_weights_show_is_told_with_the_first_sample():
    """Every tensor named bias set to 1 makes the forget gate 0.88 where 0.73 was meant."""
    model = Forgetful(0.9)
    with torch.no_grad():
        model.rnn.bias_ih_l0.fill_(1.0)
        model.rnn.bias_hh_l0.fill_(1.0)
    with gradflow.watch(model, every=2, out="run") as flow:
        list(training(model, 5, 4))
    (found,) = [finding for finding in flow.findings if finding.code == "GF201"]
    assert (found.update, found.layer, found.gate) == (0, "rnn, layer 0", "forget")
    assert [finding.code for finding in load_log("run").findings] == ["GF201"]


def _stopped_at(last: int, updates: Iterator[int]) -> None:
    for update in updates:
        if update == last:
            raise KeyboardInterrupt


def test_of_processes_that_train_together_the_first_alone_tells(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """The others measure, and are silent."""
    monkeypatch.setenv("RANK", "1")
    flow = _watched(0.1, 60, out="run")
    assert len(flow.samples) == 3
    assert not Path("run").exists()
    assert caplog.records == []


@pytest.mark.parametrize("none", [None, (), iter(())])
def test_sinks_may_be_none_or_made_one_by_one(none: object):
    """What is handed on from somewhere else need not be a list."""
    received: list[FlowSample] = []
    assert len(_watched(0.9, 5, sinks=none).samples) == 3
    _watched(0.9, 5, sinks=(each for each in [received.append]))
    assert [sample.update for sample in received] == [0, 1, 2]


def test_a_need_that_was_written_as_text_is_a_number():
    """As an environment variable has it."""
    flow = _watched(0.1, 60, every="1", needs_lag="59")
    assert [(each.code, each.severity) for each in flow.findings] == [("GF101", "error")]


@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ({"every": 0}, SettingError, "every"),
        ({"needs_lag": -1}, SettingError, "needs_lag"),
        ({"sinks": 3}, SettingError, "a sink has add_scalar"),
        ({"out": 5}, SettingError, "out is the name of a run folder"),
        ({"out": ""}, SettingError, "out is the name of a run folder"),
        ({"first_update": -1}, SettingError, "at least 0; got -1"),
        ({"first_update": 1.5}, SettingError, "a whole number"),
        ({"scaler": 3}, SettingError, "scaler is the torch.amp.GradScaler"),
        ({"out": "taken"}, RunFolderError, "Name another folder"),
    ],
)
def test_a_wrong_request_is_refused_before_the_training_begins(
    how: dict, kind: type[Exception], message: str
):
    """With the name of what is wrong, and no hook left behind."""
    Path("taken").write_text("")
    model = Forgetful(0.9)
    with pytest.raises(kind, match=message):
        gradflow.watch(model, **how)
    assert not model.rnn._forward_hooks
    with pytest.raises(CellLoadError):
        gradflow.watch(torch.nn.Linear(2, 2), out=False)


def test_the_log_is_strict_json_line_by_line():
    """For whoever reads it without gradflow."""
    _watched(0.1, 60, out="run")
    lines = Path("run/watch.jsonl").read_text().splitlines()
    header, *samples = [json.loads(line, parse_constant=pytest.fail) for line in lines]
    assert header["schema"] == "gradflow/watch-log/1"
    assert [line["sample"]["update"] for line in samples] == [0, 1, 2]
    assert [[found["code"] for found in line["findings"]] for line in samples] == [
        ["GF101"], [], [],
    ]  # fmt: skip


def _every_step(layer: torch.nn.Module, gain: float) -> reported.ReportedWatch:
    """Watch one update of a loss that reads every step, with recurrent weights `gain` times I."""
    torch.manual_seed(0)
    layer.double()
    with torch.no_grad():
        layer.weight_hh_l0.copy_(
            gain * torch.eye(4, dtype=torch.float64).repeat(len(layer.weight_hh_l0) // 4, 1)
        )
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.0)
    with gradflow.watch(layer, every=1, out=False) as flow:
        output, _ = layer(torch.rand(40, 3, 2, dtype=torch.float64))
        output.retain_grad()
        output.sum().backward()
        optimizer.step()
    expected = output.grad.flip(0).flatten(1).norm(dim=1).log10()
    assert flow.samples[0].layers[0].log10_arriving == pytest.approx(expected.tolist(), abs=1e-12)
    return flow


def test_an_explosion_is_told_although_the_loss_reads_every_step():
    """A relu network that multiplies by 1.3 a step, whose inputs and weights keep it open."""
    layer = torch.nn.RNN(2, 4, nonlinearity="relu")
    with torch.no_grad():
        layer.weight_ih_l0.abs_()
        layer.bias_ih_l0.fill_(1.0)
        layer.bias_hh_l0.fill_(0.0)
    found = [finding for finding in _every_step(layer, 1.3).findings if finding.code == "GF102"]
    (finding,) = found
    total = sum(1.3**lag for lag in range(40))  # of contributions of one size
    assert finding.value == pytest.approx(math.log10(total / 40), abs=1e-9)


def test_a_loss_at_every_step_of_a_quiet_network_explodes_nothing():
    """Contributions add up to less than their number."""
    flow = _every_step(torch.nn.GRU(2, 4), 0.3)
    assert "GF102" not in [finding.code for finding in flow.findings]
