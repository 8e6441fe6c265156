"""What a measurement through time and depth needs of its stack and of the run."""

from __future__ import annotations

import torch

from gradflow.cells.stack import Stack, StackRun
from gradflow.errors import CellLoadError, DivergenceError, ShapeError


def require_stack(stack: object) -> None:
    """Raise unless this is a stack, and no layer of torch's."""
    if not isinstance(stack, Stack):
        raise CellLoadError(
            f"the norms are those of a gradflow.Stack; got a {type(stack).__name__}. Make one: "
            "Stack.from_torch(layer), or Stack([cell])."
        )


def require_own_run(stack: Stack, run: StackRun) -> None:
    """Raise where the run has states or layers that the stack has not."""
    own = [cell.part_sizes for cell in stack.all_cells()]
    given = [tuple(part.shape[-1] for part in states) for states in run.states]
    if own != given or len(run.inputs) != stack.layers:
        raise ShapeError(
            f"the run must be this stack's own, stack.run(x); its states are {own} wide, the run's "
            f"{given}, in {len(run.inputs)} layers."
        )


def require_finite(stack: Stack, run: StackRun) -> None:
    """Raise where a state is nan or infinite, and say which."""
    for index, states in enumerate(run.states):
        broken = torch.stack([~torch.isfinite(part).all(dim=2) for part in states]).any(dim=0)
        if bool(broken.any()):
            layer, direction = divmod(index, stack.directions)
            step, row = (int(place) + 1 for place in broken.nonzero()[0])
            way = " (reverse)" if direction else ""
            raise DivergenceError(
                f"the state of layer {layer + 1}{way} is no longer finite at position {step} of "
                f"sample {row}, so its derivative is none. Use smaller weights or fewer steps."
            )
