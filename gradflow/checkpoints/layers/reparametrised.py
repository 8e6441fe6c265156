"""Weights that are stored as something else, rebuilt to the matrix that the network used.

    weight norm       W = g v / ||v||           (Salimans & Kingma 2016, eq. 2), row by row or whole
    spectral norm     W = w / (u^T w v)         (Miyato et al. 2018, eq. 8), in evaluation mode
    orthogonal        torch's parametrization of it: B exp(A), or Householder reflections
    dropped weights   W = raw                   (Merity et al. 2018, AWD-LSTM), in evaluation mode
    pruned weights    W = orig * mask

All of it in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

Parts = Mapping[str, Tensor]


class UnknownParametrization(Exception):
    """The tensors do not say how the weight is computed from them; the message says why not."""


@dataclass(frozen=True)
class Rebuilt:
    """A weight in float64, how it was computed, and what had to be assumed ("" where nothing)."""

    tensor: Tensor
    how: str = ""
    assumed: str = ""


def rebuild(parts: Parts) -> Rebuilt:
    """Return the effective weight.

    Args:
        parts: what is stored of it: "" alone for a plain weight, else g and v, original0 and
            original1, original and 0.base, orig, u and v, raw, orig and mask.

    Raises:
        UnknownParametrization: the parts are of no parametrization that is known.
    """
    wide = {name: tensor.detach().cpu().to(torch.float64) for name, tensor in parts.items()}
    names = set(wide)
    for needed, how, compute in _WAYS:
        if needed <= names:
            return Rebuilt(compute(wide), how)
    if "original" in names:
        return _parametrized(wide)
    if "" in names:
        return Rebuilt(wide[""])
    raise UnknownParametrization(
        f"it is stored in parts ({', '.join(sorted(names))}) that belong to no parametrization "
        "that is known"
    )


def _weight_norm(magnitude: Tensor, direction: Tensor) -> Tensor:
    """Return g v / ||v||, the norm over those axes along which g has one number."""
    shape = magnitude.shape or (1,) * direction.dim()
    axes = [axis for axis, length in enumerate(shape) if length == 1]
    norm: Tensor = torch.linalg.vector_norm(direction, dim=axes, keepdim=True)
    return magnitude * direction / norm


def _spectral_norm(weight: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return w / (u^T w v); u belongs to the columns where the norm was taken along dim=1."""
    along_rows = left.shape[0] == weight.shape[0] and right.shape[0] == weight.shape[1]
    return weight / (left @ (weight if along_rows else weight.mT) @ right)


_WAYS: tuple[tuple[set[str], str, Callable[[Parts], Tensor]], ...] = (
    ({"raw"}, "dropped weights, without dropping", lambda p: p["raw"]),
    ({"g", "v"}, "weight norm", lambda p: _weight_norm(p["g"], p["v"])),
    (
        {"original0", "original1"},
        "weight norm",
        lambda p: _weight_norm(p["original0"], p["original1"]),
    ),
    (
        {"orig", "u", "v"},
        "spectral norm, as in evaluation mode",
        lambda p: _spectral_norm(p["orig"], p["u"], p["v"]),
    ),
    ({"orig", "mask"}, "pruning", lambda p: p["orig"] * p["mask"]),
    (
        {"original", "0._u", "0._v"},
        "spectral norm, as in evaluation mode",
        lambda p: _spectral_norm(p["original"], p["0._u"], p["0._v"]),
    ),
)


def _parametrized(parts: Parts) -> Rebuilt:
    """Return a weight of one `original` tensor: orthogonal, or of nobody knows which function."""
    original = parts["original"]
    others = sorted(set(parts) - {"original", "", "0.base"})
    if others:
        raise UnknownParametrization(
            f"it is parametrized by a function of its own, which the file does not hold (beside "
            f"`original` there is {', '.join(others)})"
        )
    if "0.base" not in parts and not _is_reflections(original):
        raise UnknownParametrization(
            "it is parametrized by a function that the file does not hold (there is only "
            "`original`)"
        )
    if "0.base" not in parts:
        return Rebuilt(_orthogonal(parts, "householder"), "orthogonal")
    orthogonal_map = "matrix_exp" if original.shape[-1] == original.shape[-2] else "householder"
    assumed = (
        "Which orthogonal map it was is not in the file; torch's usual one for this shape, "
        f"{orthogonal_map}, is taken. It is orthogonal with any."
    )
    return Rebuilt(_orthogonal(parts, orthogonal_map), "orthogonal", assumed)


def _is_reflections(original: Tensor) -> bool:
    """Return whether this is how torch stores reflections: the diagonal is 1 and -1."""
    if original.dim() != 2:
        return False
    diagonal = original.diagonal()
    return bool((diagonal.abs() == 1).all())


def _orthogonal(parts: Parts, orthogonal_map: str) -> Tensor:
    """Let torch compute it, on a module of the same shape in float64."""
    original = parts["original"]
    holder = nn.Module()
    eye = torch.eye(*original.shape, dtype=torch.float64, device="cpu")
    holder.register_parameter("weight", nn.Parameter(eye))
    has_base = "0.base" in parts
    parametrizations.orthogonal(holder, "weight", orthogonal_map, use_trivialization=has_base)
    stored = {"original": original} | ({"0.base": parts["0.base"]} if has_base else {})
    holder.load_state_dict({f"parametrizations.weight.{k}": v for k, v in stored.items()})
    weight = holder.weight
    assert isinstance(weight, Tensor)
    return weight.detach()
