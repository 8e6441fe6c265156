"""Loops as people write them: mixed precision, closures, no optimizer, steps left out."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from gradflow.records.watch import BrokenTensor
from gradflow.watching.watch import watch
from tests.watching.measuring import (
    Reader,
    X,
    assert_same_profiles,
    last_output,
    layer_of,
    twin_of,
)


def scaled_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler, x: Tensor
) -> None:
    """Do an update in mixed precision, as torch's documentation has it, with clipping."""
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(x)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    scaler.step(optimizer)
    scaler.update()


def test_a_loss_scale_is_taken_out():
    """The scaler is found where it steps the optimizer; numbers are those of the loss itself."""
    layer = layer_of("LSTM", 3, 5, 2)
    loss, twin = twin_of(layer)
    norm = _norm(torch.autograd.grad(last_output(layer, X), list(layer.parameters())))
    model = Reader(layer, last_output)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    with watch(model, every=1) as flow:
        scaled_step(model, optimizer, scaler, X)  # float64 is left as it is by autocast
    (sample,) = flow.samples
    assert sample.loss_scale == 1024.0
    assert_same_profiles(sample, loss, twin)
    assert sample.log10_parameter_gradient_norm == pytest.approx(norm, abs=1e-12)


def _norm(gradients: tuple[Tensor, ...]) -> float:
    return math.log10(math.sqrt(sum(float(each.square().sum()) for each in gradients)))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN_TANH"])
def test_in_bfloat16_numbers_are_those_of_float64_within_its_rounding(kind: str):
    """Autocast rounds to 8 bits; the twin computes in float64 from the same weights and input."""
    layer = layer_of(kind, 3, 5, 2, dtype=torch.float32)
    wide = layer_of(kind, 3, 5, 2)
    wide.load_state_dict(layer.state_dict())
    loss, twin = twin_of(wide)
    model = Reader(layer, last_output)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    with watch(model, every=1) as flow:
        scaled_step(model, optimizer, scaler, X.float())
    (sample,) = flow.samples
    assert_same_profiles(sample, loss, twin, tolerance=0.1)
    assert not any(layer.notes for layer in sample.layers)


def test_an_update_that_a_scaler_skips_is_no_sample():
    """Gradients that overflow under a scale are the scaler's business: the next update is taken."""
    layer = layer_of("LSTM", 3, 5, dtype=torch.float32)
    model = Reader(layer, lambda rnn, x: 1e3 * last_output(rnn, x))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, backoff_factor=2.0**-60)
    with watch(model, every=10, scaler=scaler) as flow:
        for _ in range(4):
            scaled_step(model, optimizer, scaler, 1e3 * X.float())
    (sample,) = flow.samples
    assert sample.update == 0
    assert "skipped by the GradScaler" in sample.notes[0]
    assert all(layer.first_non_finite is None for layer in sample.layers)


def test_a_closure_is_run_within_the_step():
    """Lightning and LBFGS hand forward and backward to optimizer.step: its end is the update's."""
    layer = layer_of("GRU", 3, 5)
    loss, twin = twin_of(layer)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

    def closure() -> Tensor:
        optimizer.zero_grad()
        found = last_output(layer, X)
        found.backward()
        return found

    with watch(layer, every=2) as flow:
        for _ in range(3):
            optimizer.step(closure)
    assert [sample.update for sample in flow.samples] == [0, 2]
    assert_same_profiles(flow.samples[0], loss, twin)


def test_a_closure_that_is_run_several_times_is_one_update():
    """LBFGS evaluates at weights that it tries; the first evaluation is at the update's own."""
    layer = layer_of("GRU", 3, 5)
    loss, twin = twin_of(layer)
    optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=4)

    def closure() -> Tensor:
        optimizer.zero_grad()
        found = last_output(layer, X)
        found.backward()
        return found

    with watch(layer, every=1) as flow:
        for _ in range(2):
            optimizer.step(closure)
    assert [sample.update for sample in flow.samples] == [0, 1]
    assert_same_profiles(flow.samples[0], loss, twin)


@pytest.mark.parametrize("clear", [None, 0.0])
def test_a_loop_without_an_optimizer(clear: float | None):
    """Cleared gradients tell that an update is done; each backward pass is one then."""
    layer = layer_of("LSTM", 3, 5)
    loss, twin = twin_of(layer)
    with watch(layer, every=2) as flow:
        for _ in range(6):
            last_output(layer, X).backward()
            for parameter in layer.parameters():
                with torch.no_grad():
                    parameter.add_(parameter.grad, alpha=-0.1)
                    parameter.grad = None if clear is None else parameter.grad.zero_()
    assert [sample.update for sample in flow.samples] == [0, 2, 4]
    assert_same_profiles(flow.samples[0], loss, twin)


def test_a_step_that_is_left_out_is_no_update():
    """A loop that clears its gradients after a NaN, and goes on, has done no update."""
    layer = layer_of("GRU", 3, 5)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    broken = X.clone()
    broken[2] = math.nan
    with watch(layer, every=2) as flow:
        for x in (X, X, broken, X, X):
            optimizer.zero_grad()
            loss = last_output(layer, x)
            loss.backward()
            if bool(torch.isfinite(loss)):
                optimizer.step()
    assert [sample.update for sample in flow.samples] == [0, 2]
    assert flow.updates == 4
    assert flow.samples[1].layers[0].first_non_finite == BrokenTensor("input", 2)
    assert "without a step" in flow.samples[1].notes[0]


def test_frozen_layers_are_updated_with_the_head():
    """An optimizer of the head alone ends the updates of a model whose layer is frozen."""

    class Frozen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.below = nn.Linear(3, 3, dtype=torch.float64)
            self.rnn = layer_of("LSTM", 3, 5).requires_grad_(False)

        def forward(self, x: Tensor) -> Tensor:
            return last_output(self.rnn, self.below(x))

    model = Frozen()
    optimizer = torch.optim.SGD(model.below.parameters(), lr=0.1)
    with watch(model, every=1) as flow:
        for _ in range(2):
            optimizer.zero_grad()
            model(X).backward()
            optimizer.step()
    assert [sample.update for sample in flow.samples] == [0, 1]
    assert None not in flow.samples[0].layers[0].log10_dL_dh


def test_optimizers_that_step_within_the_backward_pass_end_no_update():
    """One optimizer a parameter, called by its own hook: the cleared gradients tell of the end."""
    layer = layer_of("LSTM", 3, 5)
    loss, twin = twin_of(layer)
    for parameter in layer.parameters():
        optimizer = torch.optim.SGD([parameter], lr=0.1)

        def step(done: Tensor, own: torch.optim.Optimizer = optimizer) -> None:
            own.step()
            own.zero_grad()

        parameter.register_post_accumulate_grad_hook(step)
    with watch(layer, every=2) as flow:
        for _ in range(5):
            last_output(layer, X).backward()
    assert [sample.update for sample in flow.samples] == [0, 2, 4]
    assert_same_profiles(flow.samples[0], loss, twin)


def test_a_scaler_that_is_switched_off_scales_nothing():
    """GradScaler(enabled=False) is how loops leave mixed precision out."""
    layer = layer_of("LSTM", 3, 5)
    loss, twin = twin_of(layer)
    model = Reader(layer, last_output)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    with watch(model, every=1, scaler=scaler) as flow:
        scaled_step(model, optimizer, scaler, X)
    assert flow.samples[0].loss_scale is None
    assert_same_profiles(flow.samples[0], loss, twin)


def test_accumulated_gradients_that_are_zero_are_not_taken_for_cleared():
    """A dead unit's gradient is zero without anyone clearing it."""
    layer = layer_of("RNN_RELU", 3, 5)
    with torch.no_grad():
        layer.bias_ih_l0.fill_(-100.0)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    with watch(layer, every=1) as flow:
        for _ in range(2):
            for _ in range(3):
                layer(X)[0].sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert [sample.update for sample in flow.samples] == [0, 1]
    assert flow.samples[0].log10_parameter_gradient_norm is None


def test_a_call_too_long_for_memory_is_left_out(monkeypatch: pytest.MonkeyPatch):
    """A twin that would need gigabytes for one row is not begun; a note says so."""
    monkeypatch.setattr("gradflow.watching.replay_calls._MOST_ROOM", 20 * 5 * 4)
    layer = layer_of("LSTM", 3, 5)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    with watch(layer, every=1) as flow:
        (last_output(layer, X[:3]) + last_output(layer, X[:8])).backward()
        optimizer.step()
    (sample,) = flow.samples
    assert [found.steps for found in sample.layers] == [3]
    assert sample.notes == ("lstm is left out: 7 steps need too much memory.",)
