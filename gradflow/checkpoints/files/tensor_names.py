"""The names of a recurrent layer's tensors in a state dict, taken apart.

    encoder.rnn.weight_hh_l1_reverse                       nn.RNN, nn.LSTM, nn.GRU
    cell.weight_hh                                         nn.RNNCell, nn.LSTMCell, nn.GRUCell
    lstm.weight_hh_l0_g, lstm.weight_hh_l0_v               weight norm, as it was
    lstm.parametrizations.weight_hh_l0.original0           weight norm, as it is
    lstm.weight_hh_l0_raw                                  dropped weights (AWD-LSTM)

and the wrappers that put words before them: `module.` (DataParallel), `_orig_mod.`
(torch.compile), `model.` (Lightning), in any mix.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TENSORS = ("weight_ih", "weight_hh", "weight_hr", "bias_ih", "bias_hh")
# Words that only wrap; they may stand anywhere in a name.
_WRAPPERS = frozenset(
    {"module", "_module", "_orig_mod", "_forward_module", "_fsdp_wrapped_module"}
    | {"_checkpoint_wrapped_module"}
)
_LEADING = "model"  # Lightning's; further inside it is a user's own word

_BASE = (
    r"(?P<base>weight_ih|weight_hh|weight_hr|bias_ih|bias_hh)"
    r"(?:_l(?P<level>\d+)(?P<reverse>_reverse)?)?"
)
_PLAIN = re.compile(rf"(?:(?P<owner>.+)\.)?{_BASE}(?:_(?P<part>g|v|u|raw|orig|mask))?")
_PARAMETRIZED = re.compile(
    rf"(?:(?P<owner>.+)\.)?parametrizations\.{_BASE}\.(?P<part>original\d?|\d+\.\w+)"
)
# ONNX's W, R and B, and Keras's kernels; see `foreign_layouts`.
_FOREIGN = re.compile(r"(.*[./_])?(W|R|B|kernel|recurrent_kernel|bias)(:0)?")


@dataclass(frozen=True)
class TensorName:
    """One tensor of a recurrent layer.

    `owner` is the dotted name of its module, `level` the layer that it belongs to (None for a
    cell), `part` what it is of a weight that is computed from several tensors ("" where it is the
    weight itself).
    """

    owner: str
    base: str
    level: int | None
    reverse: bool
    part: str


def read_tensor_name(name: str) -> TensorName | None:
    """Return what a name says, None where it is no recurrent layer's.

    >>> read_tensor_name("encoder.rnn.weight_hh_l1_reverse")
    TensorName(owner='encoder.rnn', base='weight_hh', level=1, reverse=True, part='')
    >>> read_tensor_name("parametrizations.weight_hh_l0.original1").part
    'original1'
    >>> read_tensor_name("head.weight") is None
    True
    """
    match = _PARAMETRIZED.fullmatch(name) or _PLAIN.fullmatch(name)
    if match is None:
        return None
    level = match["level"]
    return TensorName(
        owner=match["owner"] or "",
        base=match["base"],
        level=None if level is None else int(level),
        reverse=match["reverse"] is not None,
        part=match["part"] or "",
    )


def may_be_recurrent(name: str) -> bool:
    """Return whether a tensor's numbers are needed at all.

    >>> [may_be_recurrent(name) for name in ("rnn.weight_hh_l0_raw", "W", "embedding.weight")]
    [True, True, False]
    """
    plain = name.replace("/", ".")
    return read_tensor_name(plain) is not None or _FOREIGN.fullmatch(name) is not None


def without_wrappers(name: str) -> str:
    """Return a dotted name without the words that only wrap.

    >>> without_wrappers("model._orig_mod.module.encoder.rnn.weight_ih_l0")
    'encoder.rnn.weight_ih_l0'
    >>> without_wrappers("encoder.model.weight_ih_l0")
    'encoder.model.weight_ih_l0'
    """
    words = [word for word in name.split(".") if word not in _WRAPPERS]
    while len(words) > 1 and words[0] == _LEADING:
        words = words[1:]
    return ".".join(words)
