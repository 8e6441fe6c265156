"""The gradient of the loss at every state, and what the fused layer would have said of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from gradflow.experiments.benchmark.gradient_profile import gradient_profile
from gradflow.experiments.benchmark.networks import Network, make_network
from gradflow.experiments.benchmark.signal_task import SignalTask
from gradflow.experiments.benchmark.tasks import Sequences
from tests.experiments.benchmark.small import copy_task

OWN = f"{Path(__file__).parent / 'cells.py'}:Leaky"
TASKS = {"copy": copy_task(delay=4), "signal": SignalTask(delay=9, distractors=3)}


def step_by_step(network: Network, inputs: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Run torch's own cell of the layer's weights in a loop; return outputs and states h_t."""
    kinds = {nn.LSTM: nn.LSTMCell, nn.GRU: nn.GRUCell, nn.RNN: nn.RNNCell}
    layer = network.layer
    cell = kinds[type(layer)](layer.input_size, layer.hidden_size).double()
    weights = {name.removesuffix("_l0"): value for name, value in layer.state_dict().items()}
    cell.load_state_dict(weights)
    state, hidden = None, []
    for x in network.encode(inputs):
        state = cell(x, state)
        h = state[0] if isinstance(state, tuple) else state
        h.retain_grad()
        hidden.append(h)
    return torch.stack(hidden), hidden


def data_of(name: str) -> Sequences:
    """Return a few sequences."""
    task = TASKS[name]
    return task.sequences(task.draw(6, torch.Generator().manual_seed(1)))


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_the_profile_is_autograds_on_torchs_own_cell(cell: str, name: str):
    """||dL/dh_t|| over batch and units at every t, from retained gradients of a plain loop."""
    task, data = TASKS[name], data_of(name)
    network = make_network(task, cell=cell, hidden=5, embedding=3).double()
    found = gradient_profile(network, task, data, network.state_dict())
    output, hidden = step_by_step(network, data.inputs)
    loss = task.loss(network.answer(output), data.targets)
    loss.backward()
    norms = torch.stack([torch.linalg.vector_norm(h.grad) for h in hidden])
    torch.testing.assert_close(found.log10_norms["h"], norms.log10())
    output, hidden = step_by_step(network, data.inputs)
    task.recall_loss(network.answer(output), data.targets).backward()
    norms = torch.stack([torch.linalg.vector_norm(h.grad) for h in hidden])
    torch.testing.assert_close(found.recall_norms["h"], norms.log10())
    assert found.loss == pytest.approx(loss.item(), rel=1e-12)
    assert found.loss_error < 1e-12


def test_a_state_feels_the_recall_less_than_what_is_asked_of_it_at_once():
    """In a copy the loss is on every step; what comes back over the delay is the recall's alone."""
    task, data = TASKS["copy"], data_of("copy")
    network = make_network(task, cell="lstm", hidden=5, embedding=3).double()
    found = gradient_profile(network, task, data, network.state_dict())
    share = found.recall_norms["h"] - found.log10_norms["h"]
    assert float(share[0]) < -1.0
    assert float(share[-1]) > 0.0  # a mean over fewer steps


def test_the_fused_layer_would_say_zero_before_the_last_step():
    """The gradient of nn.LSTM's output is no gradient of the state: it misses all the recurrence.

    The loss of the signal task is on the last step alone, and the true profile is zero nowhere.
    """
    task, data = TASKS["signal"], data_of("signal")
    network = make_network(task, cell="lstm", hidden=5, embedding=3).double()
    output, _ = network.layer(network.encode(data.inputs))
    output.retain_grad()
    task.loss(network.answer(output), data.targets).backward()
    assert (torch.linalg.vector_norm(output.grad, dim=(1, 2)) > 0).tolist() == [False] * 8 + [True]
    found = gradient_profile(network, task, data, network.state_dict())
    assert bool(torch.isfinite(found.log10_norms["h"]).all())


def test_an_open_forget_gate_lets_more_of_the_gradient_through():
    """Effective bias 2 against torch's default: more at the first step, by decades."""
    task = SignalTask(delay=50, distractors=3)
    data = task.sequences(task.draw(6, torch.Generator().manual_seed(1)))
    first = []
    for init in ("torch-default", "forget-bias:2"):
        network = make_network(task, cell="lstm", hidden=16, embedding=3, init=init).double()
        found = gradient_profile(network, task, data, network.state_dict())
        first.append(float(found.log10_norms["c"][0]))
    assert first[1] - first[0] > 5.0


def test_a_user_cell_has_a_profile_too():
    """That of nn.RNN with the same weights."""
    task, data = TASKS["signal"], data_of("signal")
    own = make_network(task, cell=OWN, hidden=5, embedding=3).double()
    twin = make_network(task, cell="rnn", hidden=5, embedding=3).double()
    weights = own.state_dict()
    with torch.no_grad():
        twin.layer.weight_ih_l0.copy_(weights["layer.cell.read.weight"])
        twin.layer.weight_hh_l0.copy_(weights["layer.cell.turn.weight"])
        twin.layer.bias_ih_l0.copy_(weights["layer.cell.read.bias"])
        twin.layer.bias_hh_l0.zero_()
        twin.head.load_state_dict(own.head.state_dict())
    found = [gradient_profile(network, task, data, network.state_dict()) for network in (own, twin)]
    torch.testing.assert_close(found[0].log10_norms["h"], found[1].log10_norms["h"])
