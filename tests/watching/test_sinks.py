"""Samples go to the loggers that people have; each is asked in its own way."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from tensorboardX import SummaryWriter
from tensorboardX.proto.event_pb2 import Event

from gradflow.errors import SettingError
from gradflow.watching.scalars import place_name, scalars_of
from gradflow.watching.sinks import sink_of
from tests.data.watched_runs import flow_layer, flow_sample


class _Wandb:
    """The signature of `wandb.log` and of a run's `log`."""

    def __init__(self) -> None:
        self.calls: list[tuple[dict[str, Any], int | None, bool | None]] = []

    def log(
        self, data: dict[str, Any], step: int | None = None, commit: bool | None = None
    ) -> None:
        self.calls.append((data, step, commit))


class _Trackio:
    """The signature of `trackio.log`."""

    def __init__(self) -> None:
        self.calls: list[tuple[dict[str, Any], int | None]] = []

    def log(self, metrics: dict[str, Any], step: int | None = None) -> None:
        self.calls.append((metrics, step))


class _Mlflow:
    """The signature of `mlflow.log_metrics`; a Lightning logger has the same one."""

    def __init__(self) -> None:
        self.calls: list[tuple[dict[str, Any], int | None]] = []

    def log_metrics(self, metrics: dict[str, Any], step: int | None = None) -> None:
        self.calls.append((metrics, step))


def _events(folder: Path) -> list[Event]:
    """Read TensorBoard's event files: length, its checksum, the event, its checksum."""
    data = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
    events = []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        events.append(Event.FromString(data[12 : 12 + length]))
        data = data[16 + length :]
    return events


def test_tensorboard_x_writes_every_number_at_its_update(tmp_path: Path):
    """What stands in the event file, read back, is the sample."""
    sample = flow_sample(300, flow_layer(0.5, 60))
    with SummaryWriter(str(tmp_path)) as writer:
        sink_of(writer)(sample)
    written = {
        value.tag: (value.simple_value, event.step)
        for event in _events(tmp_path)
        for value in event.summary.value
    }
    expected = scalars_of(sample)
    assert set(written) == set(expected)
    for name, number in expected.items():
        assert written[name] == (pytest.approx(number, rel=1e-6), 300)


def test_wandb_gets_numbers_without_a_step_of_their_own():
    """Its counter belongs to the user's own calls: a step below it would be dropped."""
    run = _Wandb()
    sink_of(run)(flow_sample(7))
    ((data, step, commit),) = run.calls
    assert (step, commit, data["gradflow/update"]) == (None, False, 7)
    assert data["gradflow/rnn.l0/gate_mean/forget"] == 0.9


@pytest.mark.parametrize("receiver", [_Trackio(), _Mlflow()])
def test_trackio_and_mlflow_get_one_call_with_the_update_as_step(receiver: Any):
    """All numbers of a sample stand together."""
    sample = flow_sample(7)
    sink_of(receiver)(sample)
    assert receiver.calls == [(scalars_of(sample), 7)]


def test_a_plain_log_is_told_the_update_among_the_numbers():
    """Such as a list's append under the name of log."""
    calls: list[dict[str, float]] = []

    class Plain:
        def log(self, values: dict[str, float]) -> None:
            calls.append(values)

    sink_of(Plain())(flow_sample(7))
    assert calls[0]["gradflow/update"] == 7


def test_a_number_that_is_absent_or_not_finite_is_not_sent():
    """A horizon beyond the data has no number, and a plot has no place for infinity."""
    sample = flow_sample(
        0,
        flow_layer(0.99, 20, log10_dL_dc=None, gate_means={"forget": None}),
        log10_parameter_gradient_norm=float("nan"),
    )
    names = set(scalars_of(sample))
    assert "gradflow/rnn.l0/log10_dL_dh_first" in names
    assert not {name for name in names if "horizon" in name or "dL_dc" in name}
    assert not names & {
        "gradflow/log10_parameter_gradient_norm",
        "gradflow/rnn.l0/gate_mean/forget",
    }


def test_a_layer_is_called_as_torch_calls_its_weights():
    """weight_hh_l1_reverse of a module named encoder; a second call has its number."""
    assert place_name(flow_layer(name="encoder", layer=1, direction="reverse")) == (
        "encoder.l1_reverse"
    )
    assert place_name(flow_layer(name="", call=1, calls=2)) == "l0.call2"


def test_what_can_receive_nothing_is_refused_with_what_can():
    """The folder's name in place of its writer."""
    with pytest.raises(
        SettingError, match=r"add_scalar .* got str\. Give the writer or run itself"
    ):
        sink_of("runs/tensorboard")
