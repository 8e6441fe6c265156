"""What cannot be watched, and what fails: a refusal or one warning, never the training's end."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import pytest
import torch
from torch import nn

from gradflow.cells import Stack
from gradflow.errors import CellLoadError, SettingError
from gradflow.watching.faults import WatchWarning
from gradflow.watching.watch import Watch, watch
from tests.watching.measuring import Reader
from tests.watching.test_harmless import Tagger, small, trained, update, watched_updates


def broken(*_: Any, **__: Any) -> Any:
    """Fail as a fault of the package would."""
    raise RuntimeError("a fault")


@pytest.mark.parametrize("place", ["layer_call", "watch_replay", "on_arrival"])
def test_a_fault_of_the_watch_is_one_warning(place: str, monkeypatch: pytest.MonkeyPatch):
    """Whatever fails in a hook, training goes on with the same numbers and no more hooks."""
    plain, _, _ = trained(Tagger, every=None)
    target = {
        "layer_call": "gradflow.watching.watch.layer_call",
        "watch_replay": "gradflow.watching.measured.replay_calls",
        "on_arrival": "gradflow.watching.window.snapshot",
    }[place]
    monkeypatch.setattr(target, broken)
    with pytest.warns(WatchWarning, match="a fault of its own, and the training goes on") as told:
        watched, _, samples = trained(Tagger, every=1)
    assert (len(told), samples) == (1, [])
    assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))


def test_a_fault_does_not_end_a_training_whose_warnings_are_errors(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """Under `-W error` the warning goes to the log."""
    monkeypatch.setattr("gradflow.watching.watch.layer_call", broken)
    with warnings.catch_warnings(), caplog.at_level(logging.WARNING):
        warnings.simplefilter("error")
        trained(Tagger, every=1)
    assert [record.name for record in caplog.records] == ["gradflow"]


def test_a_subscriber_that_fails_is_left_out():
    """The others go on, and so does the training."""
    layer, optimizer = small()
    seen: list[int] = []
    with pytest.warns(WatchWarning, match="receives none from now on") as told:
        watched_updates(layer, optimizer, 3, broken, lambda sample: seen.append(sample.update))
    assert (len(told), seen) == (1, [0, 1, 2])


def test_what_cannot_be_watched_is_refused():
    """No recurrent layer, no module, no number of updates."""
    with pytest.raises(CellLoadError, match="nothing to watch"):
        watch(nn.Linear(3, 4))
    with pytest.raises(CellLoadError, match="Stack steps its cells without calling them"):
        watch(Stack.build("gru", 3, 4))
    with pytest.raises(CellLoadError, match=r"a model is a torch\.nn\.Module"):
        watch(None)  # type: ignore[arg-type]
    for every in (0, -1, 2.5, True):
        with pytest.raises(SettingError, match="at least 1"):
            Watch(nn.LSTM(2, 2), every=every)  # type: ignore[arg-type]


def test_what_is_left_out_is_told_with_the_first_sample():
    """A stack of gradflow beside a layer of torch: the layer is watched."""
    stack, (layer, optimizer) = Stack.build("gru", 3, 3), small()

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stack, self.layer = stack, layer

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return self.layer(self.stack(x)[0])

    flow = watched_updates(Both(), optimizer, 2)
    assert "stack.cells.0 is left out" in flow.samples[0].notes[0]
    assert flow.samples[1].notes == ()
    assert [found.name for found in flow.samples[0].layers] == ["layer"]


def test_every_so_many_updates_one_is_sampled():
    """The first, and from there on one in three."""
    layer, optimizer = small()
    with watch(layer, every=3) as flow:
        for _ in range(8):
            update(layer, optimizer)
        assert flow.updates == 8
    assert [sample.update for sample in flow.samples] == [0, 3, 6]


def test_an_update_that_the_end_finds_open_is_measured():
    """Gradients that have come are worth a sample; a training that ends before its step, too."""
    layer, _ = small()
    with watch(layer, every=1) as flow:
        layer(torch.randn(7, 4, 3))[0][-1].sum().backward()
    assert [sample.update for sample in flow.samples] == [0]


def test_another_models_optimizer_is_no_update():
    """Only steps that can move the watched layers count."""
    layer, optimizer = small()
    other, others = small()
    with watch(Reader(layer, lambda rnn, x: rnn(x)), every=1) as flow:
        update(other, others)
        update(layer, optimizer)
    assert (flow.updates, len(flow.samples)) == (1, 1)
