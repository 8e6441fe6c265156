"""Initializations for torch's recurrent layers and cells, and for gradflow's own.

>>> import torch
>>> layer = torch.nn.LSTM(3, 8, num_layers=2, bidirectional=True)
>>> orthogonal_per_gate_(layer).scheme
'orthogonal-per-gate'
>>> print(forget_bias_(layer, 1.0))
forget-bias:1: effective bias of the keep gate: 1; all else as it was
  layer 0          forget     effective bias 1: 0.731059 kept a step at rest (half-life 2.21 steps)
  layer 0 reverse  forget     effective bias 1: 0.731059 kept a step at rest (half-life 2.21 steps)
  layer 1          forget     effective bias 1: 0.731059 kept a step at rest (half-life 2.21 steps)
  layer 1 reverse  forget     effective bias 1: 0.731059 kept a step at rest (half-life 2.21 steps)

Each function works in place on every layer and direction, sets a gate's *effective* bias (torch
adds `bias_ih` and `bias_hh`), and returns a report of what it set.
"""

from gradflow.inits.biases import chrono_, forget_bias_, zero_bias_
from gradflow.inits.copied import as_commonly_copied_
from gradflow.inits.places import Place, recurrent_places
from gradflow.inits.report import GateReport, InitReport, Range
from gradflow.inits.schemes import apply_, scheme_names
from gradflow.inits.weights import (
    he_,
    orthogonal_per_gate_,
    orthogonal_stacked_,
    scaled_identity_,
    torch_default_,
    xavier_,
)

__all__ = [
    "GateReport",
    "InitReport",
    "Place",
    "Range",
    "apply_",
    "as_commonly_copied_",
    "chrono_",
    "forget_bias_",
    "he_",
    "orthogonal_per_gate_",
    "orthogonal_stacked_",
    "recurrent_places",
    "scaled_identity_",
    "scheme_names",
    "torch_default_",
    "xavier_",
    "zero_bias_",
]
