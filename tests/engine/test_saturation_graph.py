"""Reading the autograd graph: whose rows a squashing function works on, however they were cut."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from gradflow.engine.saturation.graph import OwnRows, StepGraph, operation_name, squashed

X = torch.ones(2, 5)


def rows_of(compute: Callable[[nn.Linear], Tensor]) -> set[OwnRows]:
    """Return the rows that make a sigmoid's argument, by the graph."""
    lin = nn.Linear(5, 12)
    graph = StepGraph(dict(lin.named_parameters()))
    nodes = graph.added([torch.sigmoid(compute(lin))])
    ((node, value),) = squashed(nodes, "Sigmoid")
    assert value.shape[0] == 2
    return set(graph.own_rows(node))


@pytest.mark.parametrize(
    ("compute", "first"),
    [
        (lambda lin: lin(X).chunk(4, 1)[2], 6),
        (lambda lin: lin(X).split([5, 7], -1)[1], 5),
        (lambda lin: lin(X)[:, 3:6], 3),
        (lambda lin: lin(X)[..., -3:], 9),
        (lambda lin: lin(X).unsafe_chunk(3, dim=1)[1], 4),
        (lambda lin: nn.functional.linear(X, lin.weight[6:9], lin.bias[6:9]), 6),
        (lambda lin: X @ lin.weight[3:6].T + lin.bias[3:6], 3),
        (lambda lin: lin(X).chunk(4, 1)[1] * 2 + 1, 3),
    ],
)
def test_a_piece_of_a_stacked_pre_activation_begins_at_its_row(
    compute: Callable[[nn.Linear], Tensor], first: int
):
    """Weight and bias are found at the row where the piece begins."""
    assert rows_of(compute) == {OwnRows("weight", first), OwnRows("bias", first)}


def test_where_columns_are_rearranged_no_row_is_claimed():
    """After a reshape a column is no row any more: better no answer than a wrong one."""
    assert rows_of(lambda lin: lin(X).view(2, 4, 3)[:, 1]) == set()


def test_another_squashing_function_ends_the_search():
    """Rows that come through a sigmoid inside belong to that one."""
    lin = nn.Linear(5, 12)
    graph = StepGraph(dict(lin.named_parameters()))
    reset, candidate = lin(X).chunk(2, 1)
    nodes = graph.added([torch.tanh(torch.sigmoid(reset) * candidate)])
    ((node, _),) = squashed(nodes, "Tanh")
    assert {rows.first for rows in graph.own_rows(node)} == {6}


def test_each_step_adds_its_own_nodes_only():
    """Two steps of one cell add as many nodes each, and none twice."""
    cell = nn.RNNCell(3, 4)
    graph = StepGraph(dict(cell.named_parameters()))
    first = cell(torch.ones(1, 3), torch.zeros(1, 4, requires_grad=True))
    second = cell(torch.ones(1, 3), first)
    one, two = graph.added([first]), graph.added([second])
    assert len(one) == len(two)
    assert not set(one) & set(two)
    assert graph.added([second]) == []


def test_an_operation_is_named_as_it_is_written():
    """exp, not ExpBackward0; a function of one's own keeps its name."""

    class MySigmoid(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, value: Tensor) -> Tensor:
            return torch.sigmoid(value)

        @staticmethod
        def backward(ctx: object, gradient: Tensor) -> Tensor:
            return gradient

    x = torch.ones(2, requires_grad=True)
    names = [operation_name(y.grad_fn) for y in (x.exp(), x.reciprocal(), MySigmoid.apply(x))]
    assert names == ["exp", "reciprocal", "my_sigmoid"]
