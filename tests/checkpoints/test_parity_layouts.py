"""Where each gate's weights stand in a side: by names, by shapes, and by asking the function."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gradflow.checkpoints.parity_sides import Widths, read_side
from gradflow.checkpoints.sides import Layout
from gradflow.checkpoints.sides.find_layout import find_layout
from gradflow.checkpoints.sides.gate_words import gates_of_names
from gradflow.checkpoints.sides.weight_map import read_gate_order
from gradflow.errors import CellLoadError, SettingError
from tests.data import parity_modules, parity_square, parity_steps

WIDTHS = Widths()
NAMES_OF_GATES = {
    "lstm": (
        "Wf Wi Wc Wo",
        "W_i W_f W_o W_c",
        "W_ii W_if W_ig W_io",
        "W_hi W_hf W_hg W_ho",
        "W_fx W_ix W_cx W_ox",
        "b_i b_f b_c b_o",
        "forget_gate.weight input_gate.weight cell_gate.weight output_gate.weight",
        "lin_f.weight lin_i.weight lin_c.weight lin_o.weight",
        "x2i.weight x2f.weight x2c.weight x2o.weight",
        "forgetGate inputGate outputGate candidate",
        "W_u W_f W_o W_c",
    ),
    "gru": (
        "W_xz W_xr W_xh",
        "W_hz W_hr W_hh",
        "b_z b_r b_h",
        "W_ir W_iz W_in",
        "reset.weight update.weight candidate.weight",
        "W_z W_r W",
    ),
}


def places(layout: Layout, gate: str) -> dict[str, str]:
    """Return where a gate's blocks stand, as text."""
    return {block.reads: str(block) for block in layout.blocks if block.gate == gate}


# closed form


def test_pulling_is_the_transpose_of_filling():
    """<fill(w), g> = <w, pull(g)> for any weights and gradients, with transposes and sums."""
    side = read_side(parity_steps.d2l_gru, WIDTHS)
    layout = find_layout(side)
    generator = torch.Generator().manual_seed(1)

    def drawn(like: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {
            name: torch.randn(tensor.shape, dtype=torch.float64, generator=generator)
            for name, tensor in like.items()
        }

    weights, gradients = drawn(layout.read(side.weights)), drawn(side.weights)
    filled, pulled = layout.fill(weights, side.weights), layout.pull(gradients)
    one = sum((filled[name] * gradients[name]).sum() for name in filled)
    other = sum((weights[name] * pulled[name]).sum() for name in weights)
    assert float(one) == pytest.approx(float(other), rel=1e-12)


# names, shapes and probing


@pytest.mark.parametrize(
    ("kind", "names"), [(kind, text) for kind, texts in NAMES_OF_GATES.items() for text in texts]
)
def test_names_tell_gates(kind: str, names: str):
    """People's names for one set of gates are read as one gate each."""
    found = gates_of_names(names.split(), kind)
    assert found is not None
    assert len(set(found.values())) == len(names.split())
    letters = {"lstm": "forget", "gru": "reset"}[kind]
    named = next(name for name, gate in found.items() if gate == letters)
    assert "f" in named.lower() or "r" in named.lower()


def test_a_weight_on_both_is_cut_where_its_function_joins_them():
    """[x, h] and [h, x] have one shape; the function itself tells which it is."""
    xh = places(find_layout(read_side(parity_steps.textbook_lstm, WIDTHS)), "forget")
    assert xh == {"x": "W_f[:, 0:3]", "h": "W_f[:, 3:8]", "bias": "b_f"}
    hx = places(find_layout(read_side(parity_steps.course_lstm, WIDTHS)), "candidate")
    assert hx == {"x": "Wc[:, 5:8]", "h": "Wc[:, 0:5]", "bias": "bc"}


@pytest.mark.parametrize("width", [1, 2, 4])
def test_square_weights_are_told_apart_by_what_they_multiply(width: int):
    """With input = hidden no shape tells x from h, or W @ v from v @ W: probing does."""
    layout = find_layout(read_side(parity_square.SquareLSTM(width), WIDTHS))
    turn = "" if width == 1 else ".T"
    for gate, letter in (("input", "i"), ("forget", "f"), ("candidate", "g"), ("output", "o")):
        found = places(layout, gate)
        assert found["x"].removesuffix(".T") == f"U_{letter}"
        assert found["h"] in {f"W_{letter}{turn}", f"W_{letter}"}
        if width > 1:
            assert found == {"x": f"U_{letter}", "h": f"W_{letter}.T", "bias": f"b_{letter}"}
    assert not layout.guessed


def test_the_reset_gate_before_the_product_is_told_apart_too():
    """There U_r's gradient is as symmetric as h h^T; unlike units break the tie."""
    layout = find_layout(read_side(parity_square.SquareGRU(4), WIDTHS))
    assert places(layout, "reset") == {"x": "W_r.T", "h": "U_r.T", "bias": "b_r"}
    assert places(layout, "candidate") == {"x": "W_h.T", "h": "U_h.T", "bias": "b_h"}
    assert not layout.guessed


def test_gates_and_candidate_may_be_of_two_layers():
    """r and z stacked in one layer on [h, x], the candidate in another."""
    layout = find_layout(read_side(parity_square.StackedGRU(4), WIDTHS))
    assert places(layout, "update") == {
        "x": "gate.weight[4:8, 4:8]",
        "h": "gate.weight[4:8, 0:4]",
        "bias": "gate.bias[4:8]",
    }
    assert places(layout, "candidate")["h"] == "candidate.weight[:, 0:4]"
    assert "gate.weight" in layout.guessed[0]


def test_a_weight_without_a_gradient_stands_where_its_set_is_short():
    """U_o is square and unused: it is taken for the one that is missing on h, and said so."""
    layout = find_layout(read_side(parity_square.ForgetfulSquareLSTM(4), WIDTHS))
    assert places(layout, "output")["h"].startswith("W_o")
    assert any("W_o" in guess for guess in layout.guessed)


def test_the_order_of_stacked_gates_is_torchs_and_said_to_be_a_guess():
    """A stacked weight without torch's name may have any order; a given order is taken."""
    side = read_side(parity_steps.stacked_ifog, WIDTHS)
    assert "Wx" in find_layout(side).guessed[0]
    assert places(find_layout(side), "output")["x"] == "Wx[:, 15:20].T"
    ordered = find_layout(side, read_gate_order("ifog", "lstm"))
    assert places(ordered, "output") == {
        "x": "Wx[:, 10:15].T",
        "h": "Wh[:, 10:15].T",
        "bias": "b[10:15]",
    }
    assert not ordered.guessed


def test_biases_belong_to_their_layer_or_to_their_name():
    """One bias, two, or one and the candidate's second are each found."""
    two = places(find_layout(read_side(parity_modules.Cell(), WIDTHS)), "forget")
    assert two["bias_ih"] == "ih.bias[5:10]"
    assert two["bias_hh"] == "hh.bias[5:10]"
    one = places(find_layout(read_side(parity_modules.OneBiasGRU(), WIDTHS)), "reset")
    assert one["bias"] == "x2h.bias[0:5]"
    layout = find_layout(read_side(parity_steps.four_bias_gru, WIDTHS))
    assert places(layout, "reset")["bias"] == "b_r"
    assert places(layout, "candidate")["bias_ih"] == "b_in"
    assert places(layout, "candidate")["bias_hh"] == "b_hn"


def test_numbered_weights_are_taken_in_order_and_said_so():
    """Where no name tells a gate, torch's order stands in for it."""
    layout = find_layout(read_side(parity_steps.numbered_lstm, WIDTHS))
    assert places(layout, "forget")["x"] == "W2[:, 0:3]"
    assert any("W1, W2, W3, W4" in guess for guess in layout.guessed)


def test_single_numbers_are_told_apart_by_silence():
    """With one input and one unit all vectors are parallel; x = 0 silences what reads x."""
    layout = find_layout(read_side(parity_steps.course_lstm, Widths(1, 1)))
    assert places(layout, "forget") == {"x": "Wf[:, 1:2]", "h": "Wf[:, 0:1]", "bias": "bf"}
    layout = find_layout(read_side(parity_steps.textbook_lstm, Widths(1, 1)))
    assert places(layout, "output") == {"x": "W_o[:, 0:1]", "h": "W_o[:, 1:2]", "bias": "b_o"}


# words


def test_a_cell_that_is_no_lstm_gru_or_rnn_says_so():
    """Two blocks of weights on h are a gate too few."""

    class TwoGates(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.input_size, self.hidden_size = 3, 5
            self.ih, self.hh = nn.Linear(3, 10), nn.Linear(5, 10)

        def forward(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
            z, n = (self.ih(x) + self.hh(h)).chunk(2, 1)
            return torch.sigmoid(z) * h + torch.tanh(n)

    with pytest.raises(CellLoadError, match="its weights on h make 2"):
        find_layout(read_side(TwoGates(), WIDTHS))


def test_a_gate_order_names_every_gate_once():
    """Letters or words, with or without commas."""
    assert read_gate_order("z, r, h", "gru") == ("update", "reset", "candidate")
    assert read_gate_order("input,forget,output,candidate", "lstm")[2] == "output"
    with pytest.raises(SettingError, match="names each of its gates once"):
        read_gate_order("iifo", "lstm")
