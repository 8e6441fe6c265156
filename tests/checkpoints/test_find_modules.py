"""Recurrent modules are found inside any model: torch's, gradflow's and a user's own cells."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

from gradflow.cells import LSTM, ForeignCell, Stack
from gradflow.checkpoints import find_modules, layers_of_model
from gradflow.errors import CellLoadError
from tests.checkpoints.user_modules import (
    Broken,
    Gated,
    Louder,
    Memory,
    StepByStep,
    Whole,
    Zoneout,
)
from tests.checkpoints.weight_files import Part, translator


def found(model: nn.Module) -> list[tuple[str, str, str]]:
    """Return name, kind and sort of each module that is found."""
    return [(each.name, each.kind, each.sort) for each in find_modules(model).found]


MODELS: dict[str, tuple[Callable[[], nn.Module], list[tuple[str, str, str]]]] = {
    "a layer itself": (lambda: nn.GRU(3, 4), [("gru", "gru", "layer")]),
    "a relu RNN": (lambda: nn.RNN(3, 4, nonlinearity="relu"), [("rnn", "rnn", "layer")]),
    "a subclass": (lambda: Louder(3, 4), [("lstm", "lstm", "layer")]),
    "a cell itself": (lambda: nn.LSTMCell(3, 4), [("lstm", "lstm", "cell")]),
    "gradflow's": (lambda: nn.ModuleList([LSTM(3, 4)]), [("0", "lstm", "cell")]),
    "a user's cell": (Gated, [("Gated", "Gated", "user")]),
    "a cell in a cell": (Zoneout, [("Zoneout", "Zoneout", "user")]),
    "a foreign cell": (lambda: ForeignCell(Gated()), [("Gated", "Gated", "cell")]),
    "a model": (Whole, [("rnn", "lstm", "layer"), ("cell", "Gated", "user")]),
    "a model of one step": (StepByStep, [("cell", "gru", "cell")]),
    "two": (
        translator,
        [("encoder.rnn", "gru", "layer"), ("decoder.lstm", "lstm", "layer")],
    ),
    "DataParallel": (
        lambda: nn.DataParallel(Part("rnn", nn.GRU(3, 4))),
        [("rnn", "gru", "layer")],
    ),
    "torch.compile": (
        lambda: torch.compile(Part("rnn", nn.GRU(3, 4)), backend="eager"),  # type: ignore[arg-type,return-value]
        [("rnn", "gru", "layer")],
    ),
    "Lightning": (
        lambda: Part("model", nn.DataParallel(nn.LSTM(3, 4))),
        [("lstm", "lstm", "layer")],
    ),
    "cells in a list": (
        lambda: Part("cells", nn.ModuleList([nn.GRUCell(3, 4), nn.GRUCell(4, 4)])),
        [("cells.0", "gru", "cell"), ("cells.1", "gru", "cell")],
    ),
    "none": (lambda: nn.Linear(3, 4), []),
}


@pytest.mark.parametrize("case", MODELS)
def test_every_recurrent_module_is_found(case: str) -> None:
    """With its dotted name, without wrappers, and once."""
    make, wanted = MODELS[case]
    assert found(make()) == wanted


def test_what_stands_before_and_after_is_told() -> None:
    """The nearest parts with weights, in the order in which they were registered."""
    rnn, cell = find_modules(Whole()).found
    assert (rnn.before, rnn.after) == ("embedding (Embedding)", "head (Linear)")
    assert (cell.before, cell.after) == ("embedding (Embedding)", "head (Linear)")
    [alone] = find_modules(nn.GRU(3, 4)).found
    assert (alone.before, alone.after) == (None, None)


def test_a_shared_module_is_found_once() -> None:
    """Tied layers are one layer."""
    layer = nn.GRU(4, 4)
    assert found(nn.ModuleList([layer, layer])) == [("0", "gru", "layer")]


@pytest.mark.parametrize("model", [Part("part", Broken()), Broken()])
def test_what_looks_like_a_cell_and_is_none_says_why(model: nn.Module) -> None:
    """The reason is that of a cell that is loaded by itself."""
    search = find_modules(model)
    assert search.found == ()
    [left_out] = search.left_out
    assert "shape" in left_out.reason or "must return" in left_out.reason
    assert "cell(x, h)" in str(left_out)


def test_more_arguments_than_x_and_a_state_make_no_cell() -> None:
    """Nobody knows what to give for them."""
    search = find_modules(Memory())
    assert (search.found, search.left_out) == ((), ())


def test_a_stack_of_gradflows_is_its_cells() -> None:
    """Each cell has its own name in the stack."""
    model = Part("stack", Stack.build("gru", 3, 4, layers=2))
    assert found(model) == [("stack.cells.0", "gru", "cell"), ("stack.cells.1", "gru", "cell")]


@pytest.mark.filterwarnings("ignore")
def test_a_quantised_layer_is_left_out_by_name() -> None:
    """A quantised layer has no weights to differentiate by."""
    quantised = torch.ao.nn.quantized.dynamic.GRU(3, 4)
    search = find_modules(Part("rnn", quantised))
    assert search.found == ()
    assert [each.quantised for each in search.left_out] == [True]
    assert "is quantised" in str(search.left_out[0])


@pytest.mark.filterwarnings("ignore")
def test_what_is_no_model_is_refused() -> None:
    """A class, a path and a scripted module are none."""
    for wrong in (nn.LSTM, "model.pt"):
        with pytest.raises(CellLoadError, match=r"a model is a torch\.nn\.Module"):
            find_modules(wrong)  # type: ignore[arg-type]
    with pytest.raises(CellLoadError, match="a scripted model hides its parts"):
        find_modules(torch.jit.script(nn.Linear(2, 2)))


@pytest.mark.parametrize("case", MODELS)
def test_searching_leaves_the_model_alone(case: str) -> None:
    """Weights, modes, hooks and torch's random numbers are as before."""
    model = MODELS[case][0]().train()
    before = copy.deepcopy(model.state_dict())
    random = torch.get_rng_state()
    layers_of_model(model, find_modules(model))
    assert all(part.training for part in model.modules() if "ForeignCell" not in str(type(part)))
    assert torch.equal(torch.get_rng_state(), random)
    after = model.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert all(value.dtype == after[name].dtype for name, value in before.items())
