"""The initialization that scripts copy from each other, and what it really sets."""

from __future__ import annotations

import torch
from torch import nn

from gradflow.inits.places import Place, recurrent_places
from gradflow.inits.report import InitReport, make_report


@torch.no_grad()
def as_commonly_copied_(module: nn.Module, value: float = 1.0) -> InitReport:
    """Do what many scripts do: `eye_` on weight_hh, then fill the second quarter of every bias.

    The stacked (4 H, H) matrix becomes the identity in its first H rows, which are the *input*
    gate's, and zero in all others. The loop meets both bias vectors of torch, so an LSTM's
    effective forget bias is 2 `value`. A GRU has three gates: there the second quarter is the
    last quarter of the reset gate's rows and the first half of the update gate's. Kept here to be
    compared with; input weights and other biases stay as they are.

    Args:
        module: as in `torch_default_`.
        value: what each bias vector is filled with.

    Returns:
        What was really set; `notes` say it in words.

    Raises:
        CellLoadError: no recurrent module, or parameters that are computed.
    """
    places = recurrent_places(module)
    for place in places:
        place.weight_hh.copy_(torch.eye(*place.weight_hh.shape))
        for bias in (place.bias_ih, place.bias_hh):
            if bias is not None:
                count = bias.shape[0]
                bias[count // 4 : count // 2] = value
    return make_report(
        "as-commonly-copied" if value == 1.0 else f"as-commonly-copied:{value:g}",
        "eye_ on the stacked recurrent matrix; second quarter of every bias filled",
        places,
        notes=_notes(places[0], value),
    )


def _notes(place: Place, value: float) -> tuple[str, ...]:
    first, *others = (name for name, _ in place.roles)
    notes = []
    if others:
        notes.append(
            f"recurrent weights: the identity for the {first} gate, zero for {', '.join(others)}"
        )
    if place.bias_ih is None:
        return (*notes, "the module has no bias, so the loop finds none to fill")
    where = ", ".join(_filled(place))
    return (
        *notes,
        f"both bias vectors are filled, so the effective bias is {2 * value:g}: {where}",
    )


def _filled(place: Place) -> list[str]:
    """Return the units whose bias the loop fills, gate by gate."""
    size = place.hidden_size
    count = size * len(place.roles)
    begin, end = count // 4, count // 2
    shares = []
    for index, (name, _) in enumerate(place.roles):
        covered = min(end, (index + 1) * size) - max(begin, index * size)
        if covered > 0:
            whole = "all" if covered == size else f"{covered} of {size}"
            shares.append(f"{whole} units of {name}")
    return shares
