"""Several optimizers: one after another they do one update; taking turns, one each."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gradflow.watching.faults import WatchWarning
from gradflow.watching.findings import sample_findings
from gradflow.watching.watch import watch
from tests.watching.measuring import (
    X,
    assert_same_profiles,
    last_output,
    layer_of,
    twin_of,
)


@pytest.mark.parametrize("parts", [2, 4])
@pytest.mark.parametrize("every", [1, 2, 3])
def test_optimizers_that_step_one_after_another_do_one_update(parts: int, every: int):
    """Matrices and biases, or each parameter, in an optimizer of their own."""
    layer = layer_of("LSTM", 3, 5)
    loss, twin = twin_of(layer)
    own = list(layer.parameters())
    optimizers = [torch.optim.SGD(own[first::parts], lr=0.01) for first in range(parts)]
    with watch(layer, every=every) as flow:
        for _ in range(6):
            last_output(layer, X).backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
        assert flow.updates == 6
    assert [sample.update for sample in flow.samples] == list(range(0, 6, every))
    assert_same_profiles(flow.samples[0], loss, twin)


def test_networks_that_take_turns_are_each_judged_by_their_own_steps():
    """What one makes is detached for the other's step: no gradient there is no fault of it."""
    maker, judge = layer_of("GRU", 3, 3), layer_of("GRU", 3, 3)
    pair = nn.ModuleDict({"maker": maker, "judge": judge})
    makes, judges = (torch.optim.SGD(each.parameters(), lr=0.01) for each in (maker, judge))
    with watch(pair, every=1) as flow:
        for _ in range(2):
            judges.zero_grad()
            last_output(judge, maker(X)[0].detach()).backward()
            judges.step()
            makes.zero_grad()
            last_output(judge, maker(X)[0]).backward()
            makes.step()
    names = [[layer.name for layer in sample.layers] for sample in flow.samples]
    assert names == [["judge"], ["maker", "judge"]] * 2
    assert "GF108" not in {f.code for sample in flow.samples for f in sample_findings(sample)}


def test_layers_that_an_optimizer_gets_later_count_from_then_on():
    """Unfreezing adds a group of parameters to an optimizer that is known without it."""
    model = nn.ModuleDict({"rnn": layer_of("GRU", 3, 5), "head": nn.Linear(5, 1).double()})
    head, other = (torch.optim.SGD(model["head"].parameters(), lr=0.1) for _ in range(2))
    with watch(model, every=1) as flow:
        for update in range(4):
            model["head"](model["rnn"](X)[0]).sum().backward()
            if update == 2:
                head.add_param_group({"params": list(model["rnn"].parameters())})
            head.step()
            other.step()  # from then on no update of the layer's
        assert flow.updates == 4


def test_an_optimizer_of_another_form_cannot_end_a_training():
    """One whose groups are not torch's is a fault of the watch: a warning, and no error."""

    class Odd(torch.optim.SGD):
        def __init__(self, layer: nn.Module) -> None:
            super().__init__(layer.parameters(), lr=0.1)
            self.param_groups = [None]  # type: ignore[list-item]

        def step(self, closure: None = None) -> None:  # type: ignore[override]
            return None

    layer = layer_of("GRU", 3, 5)
    optimizer = Odd(layer)
    flow = watch(layer, every=1)
    last_output(layer, X).backward()
    with pytest.warns(WatchWarning, match="fault of its own"):
        optimizer.step()
    assert flow.closed
