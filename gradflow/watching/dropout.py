"""The masks that a fused layer dropped with, drawn again from where the generator stood.

torch's layers draw them inside, one for what each level but the last hands on, in order. On the CPU
the generator's state before the call says what they were. A GPU's library keeps a generator of its
own that cannot be asked.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gradflow.watching.capture.call import Call


def draws_masks(module: nn.Module) -> bool:
    """Return whether the layer's next call draws masks of dropout."""
    if not isinstance(module, nn.RNNBase):
        return False
    return module.training and module.num_layers > 1 and module.dropout > 0.0


def dropout_masks(
    module: nn.Module, call: Call, x: Tensor, *, shown: int
) -> tuple[Tensor | None, ...]:
    """Return the factors on what each level read, (time, rows, width); None where nothing dropped.

    Args:
        module: the layer or cell.
        call: its call, with the state of the generator before it.
        x: the call's input as (time, rows, width), for its shape and device.
        shown: how wide a level's output is, both directions together.
    """
    levels = module.num_layers if isinstance(module, nn.RNNBase) else 1
    if call.generator_state is None or not isinstance(module, nn.RNNBase):
        return (None,) * levels
    generator = torch.Generator()
    generator.set_state(call.generator_state)
    sizes = call.layout.batch_sizes
    rows = x.shape[:2] if sizes is None else (int(sizes.sum()),)
    keep = 1.0 - float(module.dropout)
    masks: list[Tensor | None] = [None]
    for _ in range(levels - 1):
        drawn = torch.empty(*rows, shown, dtype=call.output_dtype, device="cpu")
        drawn.bernoulli_(keep, generator=generator)
        mask = drawn.to(x) / keep if keep else drawn.to(x)
        masks.append(mask if sizes is None else call.layout.sequence(mask))
    return tuple(masks)
