"""The direct path against the derivative it claims to be: the step with everything else frozen."""

from __future__ import annotations

import pytest
import torch

from tests import cases
from tests.reference import autograd_jacobian, direct_path


def test_the_forget_gate_is_dc_by_dc_of_one_step() -> None:
    """In one LSTM step dc'/dc is diag(f): autograd reads the gates off the Jacobian."""
    subject = cases.random_subject("lstm")
    steps = autograd_jacobian.step_jacobians(subject)[:, :, 5:, 5:]
    assert torch.allclose(
        direct_path.keep_gates(subject), steps.diagonal(dim1=2, dim2=3), rtol=1e-14
    )


@pytest.mark.parametrize("kind", ["gru", "gru-before"])
def test_the_update_gate_mixes_old_state_and_candidate(kind: str) -> None:
    """With the candidate's rows at zero, h' = z h, so h' / h is the update gate."""
    subject = cases.random_subject(kind)
    with torch.no_grad():
        for tensor in dict(subject.module.named_parameters()).values():
            tensor[10:] = 0
    gates = direct_path.keep_gates(subject)
    hidden = torch.stack([state[0] for state in autograd_jacobian.trajectory(subject)])
    before = torch.cat([subject.state[0][None], hidden[:-1]])
    assert torch.allclose(gates, hidden / before, rtol=1e-13)


def test_norms_of_a_diagonal() -> None:
    """The direct path's norms are those of the dense diagonal product."""
    subject = cases.random_subject("gru")
    product = torch.diag_embed(direct_path.keep_gates(subject).cumprod(dim=0))
    for norm in ("spectral", "frobenius"):
        cases.assert_same_log_norm(
            direct_path.direct_log_norms(subject, norm=norm),
            autograd_jacobian.matrix_norm(product, norm).log(),
        )
