"""What parity tells of a wrong cell: the slip by its name, the place, the side."""

from __future__ import annotations

import json

import pytest
from torch import nn

from gradflow.experiments.parity import parity
from gradflow.records.base import Check
from gradflow.records.parity import ParityResult
from tests.data import parity_layers, parity_modules, parity_square, parity_steps


def check(result: ParityResult, name: str) -> Check:
    """Return the check of a name."""
    return next(check for check in result.checks if check.name == name)


def failed_checks(result: ParityResult) -> set[str]:
    """Return the names of the checks that failed."""
    return {check.name for check in result.checks if not check.passed}


# what a wrong cell is told


@pytest.mark.parametrize(
    ("cell", "variant", "gate"),
    [
        (parity_modules.KerasHard, "hard sigmoid 0.2 a + 0.5 in every gate", "input"),
        (parity_modules.TorchHard, "hard sigmoid a / 6 + 0.5 in every gate", "input"),
        (parity_modules.NoOutputTanh, "no output tanh", "output"),
        (parity_modules.OneBias, "one bias, b_ih", "input"),
        (parity_modules.BiasTwice, "bias applied twice", "input"),
        (parity_modules.OneBiasGRU, "b_hn outside the reset", "candidate"),
        (parity_square.ForgetfulSquareLSTM, "h of output left out", "output"),
    ],
)
def test_a_slip_is_named_with_step_and_gate(cell: type[nn.Module], variant: str, gate: str):
    """The first step, the gate in it, and the one known variant that fits."""
    module = cell()
    kind = "GRU" if "GRU" in cell.__name__ else "LSTM"
    result = parity(f"torch.{kind}Cell", module)
    assert not result.passed
    assert [tried.name for tried in result.variants] == [variant]
    assert result.variants[0].error < 1e-14
    assert result.first_difference is not None
    assert (result.first_difference.step, result.first_difference.gate) == (1, gate)
    assert any(result.variants[0].sentence in note for note in result.notes)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (parity_steps.d2l_gru, "reset before the product"),
        (parity_steps.writing_gru, "z swapped"),
        (parity_steps.colah_gru, "z swapped, reset before the product"),
        (parity_steps.stacked_ifog, "gate order i, f, o, g"),
    ],
)
def test_a_variant_of_the_cell_is_named(function: object, names: str):
    """Habits of other books and libraries are told by name, also two at once."""
    result = parity(function)
    assert [tried.name for tried in result.variants] == [names]
    assert result.subject == "a"


def test_the_reference_may_be_the_other_one():
    """Whichever side is not torch's cell is the one that is described."""
    assert parity("torch.GRUCell", "gru-before").subject == "b"
    assert parity("gru-before", "torch.GRUCell").subject == "a"
    both = parity("gru-before", parity_steps.writing_gru)
    assert any("gru-before itself is not torch's cell: it resets before" in n for n in both.notes)


def test_a_gate_order_that_is_said_is_no_difference():
    """--gate-order ifog makes the stacked cell torch's, and the cure says so."""
    wrong = parity(nn.LSTMCell(3, 5), parity_steps.stacked_ifog)
    assert any("--gate-order ifog compares under it" in note for note in wrong.notes)
    assert parity(nn.LSTMCell(3, 5), parity_steps.stacked_ifog, gate_order="ifog").passed


def test_a_cut_gradient_is_found_though_all_states_agree():
    """detach() changes no number forward; the step, the path and the tensor are named."""
    result = parity(nn.LSTMCell(3, 5), parity_modules.Detached())
    assert failed_checks(result) == {"gradients agree"}
    assert result.first_difference is not None
    assert (result.first_difference.step, result.first_difference.quantity) == (1, "dL/dh_0")
    assert any("No gradient reaches h_0 in Detached" in note for note in result.notes)
    assert not result.variants


def test_a_truncated_gradient_is_found_between_the_steps():
    """Every single step is right; what comes from the end stops at step 3."""
    result = parity("torch.LSTM", parity_layers.Truncated())
    assert "every single step's gradient" in result.verdict
    assert any("from the last state to step 3 or any before" in note for note in result.notes)


def test_a_weight_that_gets_no_gradient_is_named():
    """Read through .data, U has its effect and no gradient; its name is told."""
    result = parity(nn.LSTMCell(3, 5), parity_modules.DeadWeight())
    assert result.unreached == ("b: hh.weight",)
    assert not check(result, "every weight gets a gradient").passed
    assert result.first_difference is not None
    assert result.first_difference.quantity == "gradient of the weights on h"
    unused = parity(nn.LSTMCell(4, 4), parity_square.ForgetfulSquareLSTM(4))
    assert unused.unreached == ("b: W_o",)


def test_a_weight_that_is_no_parameter_is_named():
    """The numbers agree, and no optimizer would ever train the tensor."""
    result = parity(nn.LSTMCell(3, 5), parity_modules.Unregistered())
    assert "every weight is a parameter" in failed_checks(result)
    assert any("W of Unregistered is a plain tensor" in note for note in result.notes)


def test_spare_weights_are_told_and_do_no_harm():
    """A layer that no step uses; and one that takes part, and has no twin in torch."""
    idle = parity(parity_modules.Idle())
    assert idle.passed
    assert any("head.weight, head.bias of Idle belongs to no gate" in note for note in idle.notes)
    normed = parity(parity_modules.Normed(), "torch.LSTMCell")
    assert not normed.passed
    assert not normed.variants
    assert any("norm.weight, norm.bias of Normed" in note for note in normed.notes)


def test_a_wrong_gate_shown_beside_right_states_is_found():
    """The new state is torch's; the dict calls f by the name of i."""
    result = parity("lstm", parity_steps.wrong_gate_shown)
    assert failed_checks(result) == {"gates agree"}
    assert result.first_difference is not None
    assert result.first_difference.quantity == "input gate"


def test_rows_that_see_each_other_are_found():
    """Three different rows: one that is alone must get what it gets among others."""
    result = parity("torch.LSTMCell", parity_modules.MixedRows())
    assert any("MixedRows mixes the rows of a batch" in note for note in result.notes)
    assert "each side gives one answer, row by row" in failed_checks(result)


def test_a_memory_of_its_own_is_found():
    """Two runs on the same numbers differ."""
    result = parity("torch.LSTMCell", parity_modules.Counting())
    assert any("Counting gives two answers" in note for note in result.notes)


def test_single_precision_is_recognised_by_its_size():
    """An error of 1e-7 is no other equation."""
    result = parity(parity_steps.single_rnn)
    assert any("the size of float32's rounding" in note for note in result.notes)


def test_what_is_no_number_is_said_and_stored_as_null():
    """log of a negative c: no number is compared, and JSON stays strict."""
    result = parity("torch.LSTMCell", parity_modules.NotANumber())
    assert result.largest_error is None
    assert any("c of NotANumber is no finite number from step 1 on" in n for n in result.notes)
    document = result.to_json()
    json.dumps(document, allow_nan=False)
    state = next(c for c in document["results"]["comparisons"] if c["quantity"] == "c")
    assert state["error"] is None
    assert state["reason"]


def test_time_and_batch_on_each_others_axis_fail():
    """A layer that says batch_first and loops over axis 0 is wrong, whatever its equations."""
    result = parity("torch.LSTM", parity_layers.BatchFirstInName())
    assert failed_checks(result) == {"time and batch are on their own axes"}


# habits that change no number


def test_arguments_that_are_written_over_are_told():
    """In-place code is run on copies: parity holds, and the caller is warned."""
    result = parity(parity_steps.overwriting_rnn)
    assert result.passed
    assert any("overwriting_rnn changes its argument h in place" in n for n in result.notes)


def test_what_a_cell_prints_is_kept_out(capsys: pytest.CaptureFixture[str]):
    """Hundreds of calls print nothing; one note says that it prints."""
    result = parity(parity_steps.printing_rnn)
    assert result.passed
    assert capsys.readouterr().out == ""
    assert sum("prints in its step" in note for note in result.notes) == 1
