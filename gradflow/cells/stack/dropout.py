"""Dropout in a stack: rates, and the masks that were drawn, as plain factors.

`between` is torch's: what a layer hands to the next one. `recurrent` is on h_{t-1} where the
gates and the candidate read it (Gal & Ghahramani 2016, "A Theoretically Grounded Application of
Dropout in Recurrent Neural Networks"); what a keep gate keeps is never dropped. Masks are drawn
afresh for every step ("step"), or once for the whole sequence ("sequence", called variational).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from gradflow.errors import SettingError, UnknownNameError, nearest_name

MaskKind = Literal["step", "sequence"]


@dataclass(frozen=True)
class Dropout:
    """Rates of dropout, from 0 to below 1, and how long a mask lasts.

    Args:
        between: the rate on what a layer hands to the next.
        recurrent: the rate on the old h that the gates and the candidate read.
        masks: "step" for a fresh mask at every step, "sequence" for one per sequence.

    Raises:
        SettingError: a rate outside [0, 1).
        UnknownNameError: another kind of mask.
    """

    between: float = 0.0
    recurrent: float = 0.0
    masks: MaskKind = "step"

    def __post_init__(self) -> None:
        for name, rate in (("between", self.between), ("recurrent", self.recurrent)):
            if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < 1:
                raise SettingError(
                    f"dropout {name} must lie from 0 to below 1, because what is left is scaled by "
                    f"1 / (1 - rate); got {rate!r}."
                )
        if self.masks not in get_args(MaskKind):
            known = nearest_name(str(self.masks), get_args(MaskKind))
            raise UnknownNameError(f"there are no masks {self.masks!r}. {known}")

    @property
    def active(self) -> bool:
        """True where anything is ever dropped."""
        return self.between > 0 or self.recurrent > 0


@dataclass(frozen=True)
class DropoutMasks:
    """The masks of one run, as factors: 0, or 1 / (1 - rate).

    `between[l]` multiplies the input of layer l, (time or 1, batch, width); None where nothing is
    dropped, as before the first layer. `recurrent[k]` multiplies what cell k reads of its old h,
    (time or 1, batch, hidden). A first axis of 1 serves all steps.
    """

    between: tuple[Tensor | None, ...]
    recurrent: tuple[Tensor | None, ...]

    def row(self, index: int, copies: int = 1) -> DropoutMasks:
        """Return the masks of one sample, for as many rows as there are copies of it."""

        def of(masks: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
            return tuple(
                None if mask is None else mask[:, index : index + 1].expand(-1, copies, -1)
                for mask in masks
            )

        return DropoutMasks(of(self.between), of(self.recurrent))

    @classmethod
    def none(cls, *, layers: int, cells: int) -> DropoutMasks:
        """Return masks that drop nothing, whatever mode the stack is in."""
        return cls((None,) * layers, (None,) * cells)

    @classmethod
    def draw(
        cls,
        rates: Dropout,
        *,
        steps: int,
        like: Tensor,
        read: Sequence[int],
        hidden: Sequence[int],
        generator: torch.Generator | None = None,
    ) -> DropoutMasks:
        """Draw the masks of a run, in float64 on the CPU: a seed is a mask whatever the dtype.

        Args:
            rates: how much is dropped, and for how long.
            steps: how many steps the run has.
            like: a tensor with a row for each sample, of the dtype and device to be.
            read: how wide the input of each layer after the first is.
            hidden: how wide the h of each cell is.
            generator: source of the masks; torch's global one where None.
        """
        length = 1 if rates.masks == "sequence" else steps

        def factors(rate: float, width: int) -> Tensor | None:
            if rate == 0:
                return None
            shape = (length, like.shape[0], width)
            drawn = torch.rand(shape, dtype=torch.float64, generator=generator, device="cpu")
            return (drawn >= rate).to(like) / (1.0 - rate)

        between = [factors(rates.between, width) for width in read]
        return cls((None, *between), tuple(factors(rates.recurrent, width) for width in hidden))


def mask_at(mask: Tensor, t: int) -> Tensor:
    """Return a mask's factors at step t, (batch, width)."""
    return mask[t] if len(mask) > 1 else mask[0]
