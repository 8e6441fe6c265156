"""A stack is torch's layer: the same numbers and gradients, on whole and on padded batches."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gradflow.cells import GRU, LSTM, ForeignCell, Stack, stack_cells
from tests.cells.layers import each_direction, each_layer, inputs, packed_run, torch_layer

# Sums of some tens of terms of order 1, over a few layers and steps.
ROUNDING = {"rtol": 1e-12, "atol": 1e-13}
LENGTHS = [3, 6, 1]


def parts(state: Any) -> tuple[Tensor, ...]:
    """Return the parts of a state in torch's form."""
    return state if isinstance(state, tuple) else (state,)


def assert_same_run(found: tuple[Tensor, Any], expected: tuple[Tensor, Any]) -> None:
    """Assert equal outputs and equal final states."""
    torch.testing.assert_close(found[0], expected[0], **ROUNDING)
    for own, other in zip(parts(found[1]), parts(expected[1]), strict=True):
        torch.testing.assert_close(own, other, **ROUNDING)


def gradients(run: tuple[Tensor, Any], wanted: list[Tensor]) -> tuple[Tensor, ...]:
    """Return the gradients of a loss that weighs every output and state differently."""
    tensors = [run[0], *parts(run[1])]
    weights = [torch.linspace(0.5, 1.5, t.numel(), dtype=t.dtype).view_as(t) for t in tensors]
    loss = sum((t * w).sum() for t, w in zip(tensors, weights, strict=True))
    return torch.autograd.grad(loss, wanted)


@each_layer
@each_direction
@pytest.mark.parametrize("layers", [1, 3])
def test_the_forward_is_torchs_fused_one(kind: str, bidirectional: bool, layers: int) -> None:
    """nn.LSTM, nn.GRU and nn.RNN over layers and directions: output and every final state."""
    layer = torch_layer(kind, layers=layers, bidirectional=bidirectional)
    x = inputs()
    assert_same_run(Stack.from_torch(layer)(x), layer(x))


@each_layer
@each_direction
def test_every_gradient_is_torchs(kind: str, bidirectional: bool) -> None:
    """Of the input and of every weight and bias of every layer and direction."""
    layer = torch_layer(kind, bidirectional=bidirectional)
    stack, x = Stack.from_torch(layer), inputs()
    own = gradients(stack(x), [x, *stack.parameters()])
    theirs = gradients(layer(x), [x, *layer.parameters()])
    assert len(own) == len(theirs)
    for one, other in zip(own, theirs, strict=True):
        torch.testing.assert_close(one, other, **ROUNDING)


@each_layer
@each_direction
def test_a_padded_batch_is_torchs_packed_run(kind: str, bidirectional: bool) -> None:
    """Samples of 3, 6 and 1 steps in the caller's order: output, states, every gradient."""
    layer = torch_layer(kind, bidirectional=bidirectional)
    stack, x = Stack.from_torch(layer), inputs()
    found, expected = stack(x, lengths=LENGTHS), packed_run(layer, x, LENGTHS)
    assert_same_run(found, expected)
    own = gradients(found, [x, *stack.parameters()])
    theirs = gradients(expected, [x, *layer.parameters()])
    for one, other in zip(own, theirs, strict=True):
        torch.testing.assert_close(one, other, **ROUNDING)


@each_layer
@each_direction
@pytest.mark.parametrize("filling", [0.0, 1e300, float("inf"), float("nan")])
def test_what_stands_in_the_padding_reaches_nothing(
    kind: str, bidirectional: bool, filling: float
) -> None:
    """Not even a nan there changes an output, a state or a gradient; the input's is exactly 0."""
    stack, x = Stack.from_torch(torch_layer(kind, bidirectional=bidirectional)), inputs()
    padding = torch.arange(6).unsqueeze(1) >= torch.tensor(LENGTHS)
    filled = x.detach().clone()
    filled[padding] = filling
    filled.requires_grad_()
    clean, dirty = stack(x, lengths=LENGTHS), stack(filled, lengths=LENGTHS)
    assert torch.equal(clean[0], dirty[0])
    own = gradients(clean, [x, *stack.parameters()])
    other = gradients(dirty, [filled, *stack.parameters()])
    assert all(torch.equal(one, two) for one, two in zip(own, other, strict=True))
    assert not torch.any(other[0][padding])
    assert not torch.any(dirty[0][padding])


@each_direction
def test_more_padding_changes_no_number(bidirectional: bool) -> None:
    """The batch is as long as its longest sample, or longer: the same states and outputs."""
    stack, x = Stack.from_torch(torch_layer("lstm", bidirectional=bidirectional)), inputs()
    longer = torch.cat([x, torch.full((5, 3, 3), 7.0, dtype=torch.float64)])
    short, long = stack(x, lengths=LENGTHS), stack(longer, lengths=LENGTHS)
    torch.testing.assert_close(long[0][:6], short[0], rtol=1e-15, atol=1e-15)
    assert not torch.any(long[0][6:])
    for one, other in zip(short[1], long[1], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-15, atol=1e-15)


def test_each_sample_is_run_as_if_it_were_alone() -> None:
    """The order of the batch is the caller's; no sample's numbers depend on its neighbours."""
    stack, x = Stack.from_torch(torch_layer("gru", bidirectional=True)), inputs()
    together, h = stack(x, lengths=LENGTHS)
    for row, length in enumerate(LENGTHS):
        alone, own = stack(x[:length, row : row + 1])
        torch.testing.assert_close(together[:length, row], alone[:, 0], **ROUNDING)
        torch.testing.assert_close(h[:, row], own[:, 0], **ROUNDING)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_states_are_given_and_returned_in_torchs_form(kind: str) -> None:
    """(h, c) or h, a row per layer and direction, also with the batch first."""
    layer = torch_layer(kind, bidirectional=True, batch_first=True)
    x = inputs().transpose(0, 1)
    generator = torch.Generator().manual_seed(5)
    h = torch.randn(4, 3, 4, generator=generator, dtype=torch.float64)
    state = (h, 2.0 * h) if kind == "lstm" else h
    stack = Stack.from_torch(layer)
    assert stack.batch_first
    assert_same_run(stack(x, state), layer(x, state))


def test_a_layer_without_bias_and_one_with_a_projection_are_torchs_too() -> None:
    """Projected h is narrower than c; layer 2 reads the narrow one."""
    x = inputs()
    bare = torch_layer("gru", bias=False)
    assert_same_run(Stack.from_torch(bare)(x), bare(x))
    narrow = torch_layer("lstm", hidden_size=5, proj_size=2, bidirectional=True)
    assert_same_run(Stack.from_torch(narrow)(x), narrow(x))
    assert_same_run(Stack.from_torch(narrow)(x, lengths=LENGTHS), packed_run(narrow, x, LENGTHS))


def test_dropout_mode_and_form_come_along_from_torch() -> None:
    """What torch's layer was built with and is set to, the stack is."""
    layer = nn.LSTM(3, 4, num_layers=2, dropout=0.25)
    stack = Stack.from_torch(layer)
    assert (stack.dropout.between, stack.dropout.masks, stack.training) == (0.25, "step", True)
    assert not Stack.from_torch(layer.eval()).training


def test_weights_are_copied() -> None:
    """Training the stack leaves torch's layer alone."""
    layer = torch_layer("gru")
    stack = Stack.from_torch(layer)
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter.zero_()
    assert all(torch.any(parameter) for parameter in layer.parameters())


def test_the_fast_run_without_a_graph_is_the_run_with_one() -> None:
    """Measuring needs no graph and takes another way; the states are the same."""
    for kind in ("lstm", "gru", "rnn"):
        stack, x = Stack.from_torch(torch_layer(kind, bidirectional=True)), inputs()
        slow = stack.run(x)
        with torch.no_grad():
            fast = stack.run(x)
        for own, other in zip(fast.states, slow.states, strict=True):
            for one, two in zip(own, other, strict=True):
                torch.testing.assert_close(one, two, **ROUNDING)


def test_a_residual_link_adds_what_a_layer_reads() -> None:
    """Cells that show nothing leave the input as it is, through any number of layers."""
    stack = Stack.build("rnn", 4, 4, layers=3, residual=True, dtype=torch.float64)
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter.zero_()
    x = inputs(width=4)
    assert torch.equal(stack(x)[0], x)
    assert [stack.has_link(layer) for layer in range(3)] == [True, True, True]


def test_a_layer_that_changes_the_width_has_no_link() -> None:
    """Input 3, hidden 4: the first layer has none, the others have; both ways side by side."""
    for both in (False, True):
        layer = torch_layer("gru", layers=3, bidirectional=both)
        plain = Stack.from_torch(layer)
        linked = Stack(plain.all_cells(), bidirectional=both, residual=True)
        assert [linked.has_link(k) for k in range(3)] == [False, True, True]
        x = inputs()
        first = linked.run(x, lengths=LENGTHS)
        for k in (1, 2):
            shown = torch.cat([first.states[k * len(linked.cells_of(0)) + d][0] for d in
                               range(linked.directions)], dim=-1)  # fmt: skip
            after = first.output if k == 2 else first.inputs[2]
            inside = first.valid.unsqueeze(-1)
            torch.testing.assert_close(after, (shown + first.inputs[k]) * inside, **ROUNDING)


def test_cells_of_different_kinds_stand_on_each_other() -> None:
    """A GRU of 5 on an LSTM of 4 under a user's module: states come one by one."""
    cells = [
        LSTM(3, 4, dtype=torch.float64),
        GRU(4, 5, dtype=torch.float64),
        ForeignCell(nn.RNNCell(5, 2, dtype=torch.float64)),
    ]
    x = inputs()
    output, states = Stack(cells)(x, lengths=LENGTHS)
    assert output.shape == (6, 3, 2)
    assert [len(state) for state in states] == [2, 1, 1]
    lower = Stack(cells[:2])(x, lengths=LENGTHS)[0]
    upper = nn.RNN(5, 2, dtype=torch.float64)
    upper.load_state_dict({f"{name}_l0": w for name, w in cells[2].module.state_dict().items()})
    torch.testing.assert_close(output, packed_run(upper, lower, LENGTHS)[0], **ROUNDING)
    again = Stack(cells)(x, states, lengths=LENGTHS)[0]
    assert not torch.equal(again, output)


def test_a_stack_of_ensembles_keeps_its_rows_apart() -> None:
    """Row b runs on the weights of member b, in every layer."""
    members = [torch_layer("gru", seed=seed) for seed in (1, 2, 3)]
    stacks = [Stack.from_torch(member) for member in members]
    layers = zip(*(stack.all_cells() for stack in stacks), strict=True)
    together, x = Stack([stack_cells(cells) for cells in layers]), inputs()
    output, h = together(x, lengths=LENGTHS)
    for row, stack in enumerate(stacks):
        alone, own = stack(x, lengths=LENGTHS)
        torch.testing.assert_close(output[:, row], alone[:, row], **ROUNDING)
        torch.testing.assert_close(h[:, row], own[:, row], **ROUNDING)


def test_a_stack_is_a_torch_module() -> None:
    """It is moved, named and stored like any other."""
    stack = Stack.build("rnn", 3, 4, layers=2)
    assert stack.to(torch.float64)(torch.zeros(2, 1, 3).double())[0].dtype == torch.float64
    assert list(stack.state_dict())[:2] == ["cells.0.weight_ih", "cells.0.weight_hh"]
    assert "bidirectional=False" in repr(stack)
