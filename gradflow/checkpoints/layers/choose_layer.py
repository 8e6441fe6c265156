"""One layer and direction of a file of weights, by its name."""

from __future__ import annotations

from gradflow.checkpoints.layers.found import Checkpoint, FoundLayer
from gradflow.errors import UnknownNameError, nearest_name

_SHOWN = 8


def choose_layer(found: Checkpoint, name: str | None) -> FoundLayer:
    """Return the layer of a name, such as "encoder.rnn.l1_reverse" or "l1_reverse".

    Args:
        found: the layers of a file.
        name: as `FoundLayer.label`, or a part of it (the module alone, the level and direction
            alone) that only one layer has; where None the file's only layer.

    Raises:
        UnknownNameError: no layer has the name, or several do; the message has all names.
    """
    labels = {layer.label: layer for layer in found.layers}
    if name in labels:
        return labels[name]
    asked = None if name is None else name.strip()
    alike = [
        layer
        for label, layer in labels.items()
        if asked is None or asked in (label, layer.name, label.removeprefix(f"{layer.name}."))
    ]
    if len(alike) == 1:
        return alike[0]
    if asked is not None and not alike:
        raise UnknownNameError(
            f"{found.path} has no layer {asked!r}. {nearest_name(asked, list(labels))}"
        )
    shown = ", ".join(layer.label for layer in alike[:_SHOWN])
    more = f" and {len(alike) - _SHOWN} more" if len(alike) > _SHOWN else ""
    raise UnknownNameError(
        f"{found.path} has {len(alike)} layers{'' if asked is None else f' {asked!r}'}: {shown}"
        f"{more}. Say which by --layer NAME."
    )
