"""For any layers, widths, directions and lengths, a stack is torch's packed run."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gradflow.cells import Stack
from tests.cells.layers import LAYERS, inputs, packed_run, torch_layer


@given(
    kind=st.sampled_from(sorted(LAYERS)),
    layers=st.integers(1, 2),
    hidden=st.integers(1, 4),
    both=st.booleans(),
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    bias=st.booleans(),
)
@settings(max_examples=20)
def test_any_padded_batch_is_torchs_packed_run(
    kind: str, layers: int, hidden: int, both: bool, lengths: list[int], bias: bool
) -> None:
    """Outputs, final states and the input's gradient to 1e-12; exactly 0 beyond each end."""
    layer = torch_layer(kind, hidden_size=hidden, layers=layers, bidirectional=both, bias=bias)
    x = inputs(steps=5, batch=len(lengths))
    found, expected = Stack.from_torch(layer)(x, lengths=lengths), packed_run(layer, x, lengths)
    gradients = []
    for output, state in (found, expected):
        parts = state if isinstance(state, tuple) else (state,)
        total = output.square().sum() + sum(part.sin().sum() for part in parts)
        gradients.append(torch.autograd.grad(total, x)[0])
    torch.testing.assert_close(found[0], expected[0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found[1], expected[1], rtol=1e-12, atol=1e-12)
    # gradients of a relu's layers can be larger than 1
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-11, atol=1e-12)
    padded = torch.arange(5).unsqueeze(1) >= torch.tensor(lengths)
    assert not torch.any(gradients[0][padded])
