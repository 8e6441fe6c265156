"""The callback for Hugging Face's Trainer, driven by a loop with the Trainer's order of events.

transformers itself is large; the order is that of `Trainer._inner_training_loop` in version 5.24:
backward, clipping, on_pre_optimizer_step, the optimizer's step, on_step_end.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import nn

import gradflow
from gradflow.errors import SettingError
from gradflow.store import load_log
from tests.monitor.forgetful import Forgetful

CLIP = 1e-4


class TrainerCallback:
    """The base of callbacks: every event exists and does nothing."""

    def on_train_begin(self, args, state, control, **kwargs) -> None:
        pass

    def on_pre_optimizer_step(self, args, state, control, **kwargs) -> None:
        pass

    def on_step_end(self, args, state, control, **kwargs) -> None:
        pass

    def on_train_end(self, args, state, control, **kwargs) -> None:
        pass


@pytest.fixture(autouse=True)
def _surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType("transformers")
    module.TrainerCallback = TrainerCallback
    monkeypatch.setitem(sys.modules, "transformers", module)


def _train(
    callbacks: list[TrainerCallback],
    updates: int,
    *,
    model: nn.Module | None = None,
    first: int = 0,
    meanwhile: Callable[[int], None] = lambda update: None,
) -> nn.Module:
    torch.manual_seed(0)
    model = model or Forgetful(0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    state, nothing = SimpleNamespace(global_step=first), SimpleNamespace()

    def tell(event: str) -> None:
        for callback in callbacks:
            getattr(callback, event)(nothing, state, nothing, model=model, optimizer=optimizer)

    tell("on_train_begin")
    model.train()
    for update in range(updates):
        meanwhile(update)
        x = torch.randn(60, 4, 2)
        nn.functional.cross_entropy(model(x), (x[0, :, 0] > 0).long()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        tell("on_pre_optimizer_step")
        optimizer.step()
        model.zero_grad()
        state.global_step += 1
        tell("on_step_end")
    tell("on_train_end")
    return model


class Seen(TrainerCallback):
    """Sees the gradients as every callback does."""

    def __init__(self) -> None:
        self.norms: list[float] = []

    def on_pre_optimizer_step(self, args, state, control, **kwargs) -> None:
        norms = [parameter.grad.norm() for parameter in kwargs["model"].parameters()]
        self.norms.append(float(torch.stack(norms).norm()))


def test_the_watch_sees_gradients_before_the_trainer_clips_them():
    """A callback of the Trainer sees them clipped."""
    callback, seen = gradflow.trainer_callback(every=2, out="run"), Seen()
    assert isinstance(callback, TrainerCallback)
    _train([callback, seen], 5)
    assert [sample.update for sample in callback.flow.samples] == [0, 2, 4]
    assert max(seen.norms) <= CLIP * 1.001
    assert min(10**s.log10_parameter_gradient_norm for s in callback.flow.samples) > 10 * CLIP
    assert [finding.code for finding in callback.flow.findings] == ["GF101"]
    assert load_log("run").samples == tuple(callback.flow.samples)
    assert callback.flow.closed


def test_updates_of_a_resumed_training_go_on_from_its_checkpoint():
    """As the Trainer's state counts them."""
    callback = gradflow.trainer_callback(every=2, out=False)
    _train([callback], 3, first=500)
    assert [sample.update for sample in callback.flow.samples] == [500, 502]


def test_a_training_that_raised_is_let_go_of_when_the_next_begins():
    """The Trainer has no event for an error."""
    callback, model = gradflow.trainer_callback(every=1, out=False), Forgetful(0.1)

    def stops(update: int) -> None:
        if update == 2:
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        _train([callback], 5, model=model, meanwhile=stops)
    first = callback.flow
    _train([callback], 1)
    assert first.closed
    assert not model.rnn._forward_hooks


def test_without_transformers_the_callback_says_what_to_import(monkeypatch: pytest.MonkeyPatch):
    """It imports nothing by itself."""
    monkeypatch.delitem(sys.modules, "transformers")
    with pytest.raises(SettingError, match="Import its Trainer before"):
        gradflow.trainer_callback()


def test_no_logger_and_no_trainer_is_imported_unless_the_user_has_it():
    """`import gradflow` and a watch load none of them."""
    program = (
        "import sys, torch, gradflow; gradflow.watch(torch.nn.LSTM(1, 1), out=False).close();"
        "gradflow.lightning_callback, gradflow.trainer_callback;"
        "names = {'wandb', 'lightning', 'pytorch_lightning', 'transformers', 'tensorboardX',"
        " 'tensorboard', 'trackio', 'mlflow', 'matplotlib'};"
        "sys.exit(sorted(names & set(sys.modules)) or 0)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100
    )
    assert (answer.returncode, answer.stderr) == (0, "")
