"""Our cells and torch's: the same states, the same gradients, the same numbers by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from gradflow.cells import GRU, LSTM, RNN, Cell
from gradflow.errors import ShapeError, UnknownNameError
from tests.cases import SUBJECT_KINDS, Setup, each_kind, empty_cell, random_subject
from tests.engine.measuring import cell_of
from tests.reference import closed_forms
from tests.reference.subject import State, Subject

TORCH_KINDS = [kind for kind in SUBJECT_KINDS if kind != "gru-before"]

# closed form


def _held_lstm(forget: float, write: float, candidate: float, output: float) -> LSTM:
    """Return a one-unit LSTM whose gates and candidate are constant at these values."""
    cell = LSTM(1, 1, dtype=torch.float64)
    values = torch.tensor([write, forget, (candidate + 1) / 2, output], dtype=torch.float64)
    bias = torch.logit(values)
    bias[2] /= 2  # tanh(a) = 2 sigmoid(2a) - 1
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.zero_()
        cell.bias_ih.copy_(bias)
    return cell


def _scalar(value: float) -> Tensor:
    return torch.tensor([[value]], dtype=torch.float64)


def test_an_lstm_keeps_f_of_its_memory_and_writes_i_of_the_candidate() -> None:
    """With c=2, f=0.8, i=0.25, candidate -0.4 and o=0.5: c'=1.5 and h'=0.5 tanh 1.5."""
    cell = _held_lstm(forget=0.8, write=0.25, candidate=-0.4, output=0.5)
    step = cell.step(_scalar(0.0), (_scalar(0.7), _scalar(2.0)))
    assert step["c"].item() == pytest.approx(1.5, rel=1e-14)
    assert step["h"].item() == pytest.approx(0.45257412682243336, rel=1e-14)
    h, c = closed_forms.lstm_from_gates(2.0, forget=0.8, write=0.25, candidate=-0.4, output=0.5)
    assert (step["h"].item(), step["c"].item()) == pytest.approx((h, c), rel=1e-14)
    assert step["candidate"].item() == pytest.approx(-0.4, rel=1e-14)
    assert {name: round(gate.item(), 12) for name, gate in step.gates.items()} == {
        "input": 0.25,
        "forget": 0.8,
        "output": 0.5,
    }


def test_what_is_left_of_a_memory_is_the_product_of_its_forget_gates() -> None:
    """Three steps with f=0.9, 0.8 and 0.5 and nothing written leave 0.36 of c."""
    c = _scalar(1.0)
    for forget in (0.9, 0.8, 0.5):
        cell = _held_lstm(forget=forget, write=0.25, candidate=0.0, output=0.5)
        c = cell.step(_scalar(0.0), (_scalar(0.0), c))["c"]
    assert c.item() == pytest.approx(0.36, rel=1e-14)


@pytest.mark.parametrize("place", ["before", "after"])
def test_a_gru_mixes_its_state_and_its_candidate_by_z(place: str) -> None:
    """With h=2, z=0.75 and candidate -0.4: h'=1.4, wherever the reset gate acts."""
    cell = GRU(1, 1, reset=place, dtype=torch.float64)
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.zero_()
        cell.bias_hh[1] = torch.logit(torch.tensor(0.75, dtype=torch.float64))
        cell.bias_ih[2] = torch.atanh(torch.tensor(-0.4, dtype=torch.float64))
    step = cell.step(_scalar(0.0), (_scalar(2.0),))
    assert step["h"].item() == pytest.approx(1.4, rel=1e-14)
    assert step["h"].item() == pytest.approx(
        closed_forms.gru_from_gates(2.0, update=0.75, candidate=-0.4), rel=1e-14
    )


# reference


def _run(subject: Subject, cell: nn.Module) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Unroll in torch's call form; return every state, and every gradient of a random loss."""
    leaves: State = tuple(part.clone().requires_grad_() for part in subject.state)
    inputs = subject.inputs.clone().requires_grad_()
    generator = torch.Generator().manual_seed(11)
    state, states, loss = leaves, [], torch.zeros((), dtype=torch.float64)
    for x in inputs:
        new = cell(x, state[0] if len(state) == 1 else state)
        state = (new,) if isinstance(new, Tensor) else tuple(new)
        states.extend(state)
        for part in state:
            weight = torch.randn(part.shape, generator=generator, dtype=torch.float64)
            loss = loss + (weight * part).sum()
    names = [name for name, _ in cell.named_parameters()]
    parameters = [cell.get_parameter(name) for name in names]
    gradients = torch.autograd.grad(loss, [inputs, *leaves, *parameters])
    labels = ["inputs", *(f"start {part}" for part in subject.parts), *names]
    return states, dict(zip(labels, gradients, strict=True))


@each_kind
@pytest.mark.parametrize("seed", [0, 1])
def test_states_and_every_gradient_are_those_of_torch(kind: str, seed: int) -> None:
    """Over six steps, from a random state, with two different non-zero biases and three rows.

    For the GRU with the reset gate before the product the twin is the textbook's, in plain torch.
    """
    subject = random_subject(kind, Setup(seed=seed))
    states, gradients = _run(subject, cell_of(subject.module))
    their_states, their_gradients = _run(subject, subject.module)
    for own, theirs in zip(states, their_states, strict=True):
        torch.testing.assert_close(own, theirs, rtol=1e-8, atol=1e-10)
    assert gradients.keys() == their_gradients.keys()
    for name, theirs in their_gradients.items():
        torch.testing.assert_close(gradients[name], theirs, rtol=1e-7, atol=1e-9, msg=name)
        assert theirs.abs().max() > 0, f"{name} tests nothing"


@each_kind
def test_cells_without_bias_agree_too(kind: str) -> None:
    """bias=False leaves both bias vectors out, here as there."""
    subject = random_subject(kind)
    if kind == "gru-before":
        with torch.no_grad():
            subject.module.bias_ih.zero_()
            subject.module.bias_hh.zero_()
        bare: nn.Module = subject.module
        cell: Cell = GRU(3, 5, reset="before", bias=False, dtype=torch.float64)
        weights = {k: v for k, v in bare.state_dict().items() if k.startswith("weight")}
        cell.load_state_dict(weights)
    else:
        kwargs = {"nonlinearity": "relu"} if kind == "rnn-relu" else {}
        bare = type(subject.module)(3, 5, bias=False, dtype=torch.float64, **kwargs)
        cell = cell_of(bare)
    states, _ = _run(subject, cell)
    theirs, _ = _run(subject, bare)
    for own, other in zip(states, theirs, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-8, atol=1e-10)
    assert [name for name, _ in cell.named_parameters()] == ["weight_ih", "weight_hh"]


@pytest.mark.parametrize("kind", TORCH_KINDS)
def test_to_torch_undoes_from_torch(kind: str) -> None:
    """The way there and back gives the same type, the same names and the same weights, copied."""
    module = empty_cell(kind)
    back = cell_of(module).to_torch()
    assert type(back) is type(module)
    assert back.state_dict().keys() == module.state_dict().keys()
    for name, weight in module.state_dict().items():
        assert torch.equal(back.state_dict()[name], weight)
        assert back.get_parameter(name) is not module.get_parameter(name)
    assert getattr(back, "nonlinearity", None) == getattr(module, "nonlinearity", None)


def test_a_state_dict_goes_both_ways() -> None:
    """Names and shapes of the parameters are torch's."""
    own, theirs = LSTM(2, 3), nn.LSTMCell(2, 3)
    theirs.load_state_dict(own.state_dict())
    own.load_state_dict(theirs.state_dict())
    assert torch.equal(own.weight_hh, theirs.weight_hh)


def test_a_weight_that_is_computed_is_taken_as_it_is_now() -> None:
    """Under weight_norm a torch cell's weight is no parameter; its value is what runs."""
    module = nn.LSTMCell(3, 5, dtype=torch.float64)
    nn.utils.parametrizations.weight_norm(module, "weight_hh")
    subject = replace(random_subject("lstm"), module=module)
    cell = LSTM.from_torch(module)
    states, _ = _run(subject, cell)
    x, (h, c) = subject.inputs[0], subject.state
    torch.testing.assert_close(states[0], module(x, (h, c))[0], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_the_dtype_is_kept(dtype: torch.dtype) -> None:
    """A half-precision torch cell becomes a half-precision cell."""
    cell = GRU.from_torch(nn.GRUCell(2, 3, dtype=dtype))
    assert cell.dtype == dtype
    assert cell.step(torch.ones(1, 2, dtype=dtype), cell.initial_state(1))["h"].dtype == dtype


def test_the_other_convention_of_z_is_a_negation_of_its_rows() -> None:
    """sigmoid(-a) is 1 - sigmoid(a): swapped weights show 1 - z, and swapping twice is nothing."""
    subject = random_subject("gru")
    cell = cell_of(subject.module)
    x, state = subject.inputs[0], subject.state
    before = cell.step(x, state)
    swapped = cell.swap_update_convention_()
    after = swapped.step(x, state)
    torch.testing.assert_close(after["update"], 1 - before["update"], rtol=1e-14, atol=1e-15)
    torch.testing.assert_close(after["candidate"], before["candidate"], rtol=0, atol=0)
    h, n = state[0], before["candidate"]
    mixed = before["update"] * n + (1 - before["update"]) * h
    torch.testing.assert_close(after["h"], mixed, rtol=1e-14, atol=1e-15)
    assert torch.equal(swapped.swap_update_convention_().step(x, state)["h"], before["h"])


# edges


def test_both_call_forms_start_from_zeros_when_no_state_is_given() -> None:
    """cell(x) is cell(x, zeros), as in torch."""
    for cell, module in ((LSTM(2, 3), nn.LSTMCell(2, 3)), (RNN(2, 3), nn.RNNCell(2, 3))):
        module.load_state_dict(cell.state_dict())
        x = torch.ones(4, 2)
        own, theirs = cell(x), module(x)
        for mine, other in zip(
            own if isinstance(own, tuple) else (own,),
            theirs if isinstance(theirs, tuple) else (theirs,),
            strict=True,
        ):
            torch.testing.assert_close(mine, other)


# words


def test_a_textbook_gru_says_that_torch_has_none() -> None:
    """The reset gate before the product exists in no torch module, so the words offer "after"."""
    with pytest.raises(UnknownNameError, match=r"no torch twin.*reset='after'"):
        GRU(2, 3, reset="before").to_torch()


@pytest.mark.usefixtures("unchecked_annotations")
def test_a_width_of_zero_is_refused() -> None:
    """A cell has at least one unit; the message names the argument."""
    with pytest.raises(ShapeError, match=r"hidden_size.*at least 1; got 0"):
        LSTM(2, 0)


@pytest.mark.usefixtures("unchecked_annotations")
def test_unknown_variants_offer_the_known_ones() -> None:
    """A misspelt reset place or nonlinearity gets the right one offered."""
    with pytest.raises(UnknownNameError, match=r"'befor'.*Did you mean 'before'"):
        GRU(2, 3, reset="befor")
    with pytest.raises(UnknownNameError, match=r"'rellu'.*Did you mean 'relu'"):
        RNN(2, 3, nonlinearity="rellu")
