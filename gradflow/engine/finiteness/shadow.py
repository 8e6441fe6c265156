"""The true value beside every number that torch computes: a shadow that cannot overflow.

Inside a `Shadow`, every operation of forward and backward pass runs twice: as torch runs it, and
on `Wide` numbers (float64 digits, no largest number). So for any module, in any dtype, an inf or
nan can be asked what it should have been.

The shadow belongs to the memory behind a tensor, not to the tensor: views, and writes in place,
then need no care.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import as_strided
from torch import Tensor
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode

from gradflow.engine.finiteness.operations import MOVES, OPERATIONS, PRODUCTS, SOURCES
from gradflow.engine.finiteness.truth import (
    Call,
    CannotFollow,
    Shadows,
    is_real,
    leaves_of,
    plain,
    short_name,
    true_results,
)
from gradflow.engine.finiteness.wide import Floats, Wide, magnitude, wide


class Shadow(TorchDispatchMode):
    """Record the true value of all that torch computes inside `with Shadow(dtype):`.

    Attributes:
        limit: the least number that the dtype rounds to infinity.
        lost: name of the first operation that could not be followed; None while all could.
        honest_overflow: name of the first matrix product that made something not finite of finite
            numbers because its terms do not add up within the dtype, whatever their signs.
        first_broken: name of the first operation that made something not finite of finite numbers.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.limit = overflow_limit(dtype)
        self.lost: str | None = None
        self.honest_overflow: str | None = None
        self.first_broken: str | None = None
        # storage address -> (storage, kept alive so that the address is not used again, shadow)
        self._memory: dict[int, tuple[Any, Floats, Floats]] = {}

    def true_value(self, tensor: Tensor) -> Wide:
        """Return the true value of a tensor; one that was not computed here is its own."""
        found = self._memory.get(_address(tensor))
        if found is None:
            return wide(plain(tensor))
        _, mantissa, exponent = found
        return Wide(_view(mantissa, tensor).copy(), _view(exponent, tensor).copy())

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run one operation in torch and in the shadow."""
        call = (args, dict(kwargs or {}))
        given = [t for t in leaves_of(call) if is_real(t)]
        # what an operation in place overwrites is looked at before, and only what will be used
        in_place = _is_in_place(func)
        shadows = self._read(given) if in_place else {}
        finite = self._are_finite(given) if in_place else None
        memory = {_address(t) for t in given}
        result = func(*args, **call[1])
        made = [t for t in leaves_of(result) if is_real(t)]
        if in_place or any(_address(t) not in memory for t in made):
            shadows = shadows or self._read(given)
            if not self._are_finite(made) and (
                self._are_finite(given) if finite is None else finite
            ):
                self._blame(func, call, shadows)
            if self.lost is None:
                self._follow(func, call, shadows, made)
        return result

    def _are_finite(self, tensors: list[Tensor]) -> bool:
        """Return whether all are finite; True as well once there is nothing more to look for."""
        looking = self.first_broken is None or self.honest_overflow is None
        return not looking or all(bool(torch.isfinite(t).all()) for t in tensors)

    def _read(self, tensors: list[Tensor]) -> Shadows:
        return {id(t): self.true_value(t) for t in tensors} if self.lost is None else {}

    def _follow(self, func: Any, call: Call, shadows: Shadows, made: list[Tensor]) -> None:
        """Write the true results beside what torch made."""
        name = short_name(func)
        if not _is_in_place(func) and (not shadows or name in SOURCES):
            return  # the numbers come from nowhere else: they are their own true values
        known = name in OPERATIONS or name in MOVES or all(v.is_plain for v in shadows.values())
        true = [] if known else self._in_pieces(func, call)
        try:
            true = true or list(true_results(func, name, call, shadows))
        except CannotFollow:
            true = self._in_pieces(func, call) if known else []
            if not true:
                self.lost = name
                return
        for tensor, value in zip(made, true or [wide(plain(t)) for t in made], strict=True):
            self._write(tensor, value)

    def _in_pieces(self, func: Any, call: Call) -> list[Wide]:
        """Return the true results of an operation by those that torch says it is made of, or []."""
        pieces = decomposition_table.get(func)
        if pieces is None or _is_in_place(func):
            return []
        kept = (self.first_broken, self.honest_overflow)
        with self:
            results = pieces(*call[0], **call[1])
        self.first_broken, self.honest_overflow = kept
        return [self.true_value(t) for t in leaves_of(results) if is_real(t)]

    def _blame(self, func: Any, call: Call, shadows: Shadows) -> None:
        """Note what made something not finite of finite numbers, and a product that had to."""
        name = short_name(func)
        self.first_broken = self.first_broken or name
        if name in PRODUCTS and self.honest_overflow is None and shadows:
            sizes = {key: magnitude(value) for key, value in shadows.items()}
            terms = next(true_results(func, name, call, sizes))
            if not np.all(terms.fits(self.limit)):
                self.honest_overflow = name

    def _write(self, tensor: Tensor, value: Wide) -> None:
        if tensor.numel() == 0:
            return
        storage, key = tensor.untyped_storage(), _address(tensor)
        if key not in self._memory:
            whole = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(storage)
            start = wide(plain(whole))
            self._memory[key] = (storage, start.mantissa.copy(), start.exponent.copy())
        _, mantissa, exponent = self._memory[key]
        _view(mantissa, tensor)[...] = value.mantissa
        _view(exponent, tensor)[...] = value.exponent


def overflow_limit(dtype: torch.dtype) -> float:
    """Return the least number that a dtype rounds to infinity; inf for float64 itself.

    It lies half a unit of the last place above the largest number.

    >>> overflow_limit(torch.float16)
    65520.0
    """
    if dtype == torch.float64:
        return float("inf")
    info = torch.finfo(dtype)
    # the largest number is (2 - eps) 2^e, its last place eps 2^e
    return info.max / (2.0 - info.eps) * (2.0 - info.eps / 2.0)


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _view(flat: Floats, tensor: Tensor) -> Floats:
    """Return the part of a storage's shadow that the tensor shows, as a view."""
    start = flat[tensor.storage_offset() :]
    if tensor.is_contiguous():
        return start[: tensor.numel()].reshape(tensor.shape)
    width = flat.itemsize
    strides = tuple(stride * width for stride in tensor.stride())
    return as_strided(start, shape=tuple(tensor.shape), strides=strides)


def _is_in_place(func: Any) -> bool:
    return bool(func.overloadpacket.__name__.endswith("_"))
