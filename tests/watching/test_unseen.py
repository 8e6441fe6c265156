"""A watch that sees nothing says so once, and why."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from gradflow.watching.faults import WatchWarning
from gradflow.watching.watch import watch
from tests.watching.measuring import Reader, last_output, layer_of

X = torch.ones(6, 2, 3, dtype=torch.float64)


class Headed(nn.Module):
    """A layer between two parts that are trained whatever becomes of it."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = layer_of("GRU", 3, 4), nn.Linear(4, 1, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x)[0])[-1].sum()


class Extracting(Headed):
    """Its layer runs without gradients."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            output = self.rnn(x)[0]
        return self.head(output)[-1].sum()


def train(model: nn.Module, optimizer: torch.optim.Optimizer, updates: int = 3) -> None:
    """Do some updates."""
    for _ in range(updates):
        optimizer.zero_grad()
        model(X).backward()
        optimizer.step()


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    """Return an optimizer of all parameters."""
    return torch.optim.SGD(model.parameters(), lr=0.1)


def in_evaluation_mode(model: Headed, optimizer: torch.optim.Optimizer) -> None:
    """Train a model that was left in evaluation mode."""
    model.eval()
    train(model, optimizer)


def frozen(model: Headed, optimizer: torch.optim.Optimizer) -> None:
    """Train the head alone."""
    model.rnn.requires_grad_(False)
    train(model, optimizer)


def replaced(model: Headed, optimizer: torch.optim.Optimizer) -> None:
    """Train another layer in the watched one's place, unknown to the optimizer."""
    model.rnn = layer_of("GRU", 3, 4)
    train(model, optimizer)


def replaced_with_its_optimizer(model: Headed, optimizer: torch.optim.Optimizer) -> None:
    """Train the layer, then another one in its place."""
    train(model, optimizer)
    model.rnn = layer_of("GRU", 3, 4)
    train(model, optimizer_of(model))


@pytest.mark.parametrize(
    ("loop", "kind", "why"),
    [
        (in_evaluation_mode, Headed, "evaluation mode"),
        (frozen, Headed, "frozen"),
        (replaced, Headed, "other layers in their place"),
        (replaced_with_its_optimizer, Headed, "other layers in their place"),
        (train, Extracting, "no_grad"),
    ],
)
def test_a_training_without_a_gradient_in_any_layer_is_told(
    loop: Callable[[nn.Module, torch.optim.Optimizer], None], kind: type[Headed], why: str
):
    """Where nothing can be seen, one warning says why."""
    model = kind()
    with pytest.warns(WatchWarning, match=why) as told, watch(model, every=1) as flow:
        loop(model, optimizer_of(model))
    assert len(told) == 1
    assert len(flow.samples) == (3 if loop is replaced_with_its_optimizer else 0)


def test_a_validation_is_no_reason():
    """Passes under no_grad in between are as they should be; it is the layer that is not called."""

    class Uncalled(Headed):
        def forward(self, x: Tensor) -> Tensor:
            weight = self.rnn.weight_ih_l0
            return self.head((x @ weight.T)[..., :4])[-1].sum()

    model = Uncalled()
    optimizer = optimizer_of(model)
    with watch(model, every=1):
        train(model, optimizer, 1)
        model.eval()
        with torch.no_grad():
            model.rnn(X)
        model.train()
        with pytest.warns(WatchWarning, match="not called as modules"):
            train(model, optimizer, 2)


def test_another_models_new_optimizer_is_no_sign_of_a_replaced_layer(
    recwarn: pytest.WarningsRecorder,
):
    """A head with an optimizer of its own is met late, and the layer is where it was."""
    model = Headed()
    with watch(model, every=1) as flow:
        train(model, torch.optim.SGD(model.rnn.parameters(), lr=0.1), 2)
        torch.optim.SGD(model.head.parameters(), lr=0.1).step()
        train(Reader(model.rnn, last_output), torch.optim.SGD(model.rnn.parameters(), lr=0.1), 1)
    assert [sample.update for sample in flow.samples] == [0, 1, 2]
    assert not [each for each in recwarn if each.category is WatchWarning]
