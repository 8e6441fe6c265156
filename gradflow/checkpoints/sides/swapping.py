"""Running a module on weights that are not its own, with gradients back to exactly those."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from gradflow.cells.foreign_checks import trial_copy


@contextlib.contextmanager
def swapped(module: nn.Module, weights: Mapping[str, Tensor]) -> Iterator[None]:
    """Let the module compute with `weights` (dotted names) in place of its own tensors.

    The tensors themselves are put in, not copies, so gradients arrive at them. A tensor that
    stands under several names is replaced under all of them. Fused layers keep a list of their
    weights beside the register; that is renewed too.
    """
    register: dict[str, Tensor] = dict(module.named_parameters(remove_duplicate=False))
    for name in stray_tensors(module):
        register[name] = tensor_at(module, name)
    by_identity = {id(register[name]): tensor for name, tensor in weights.items()}
    new = {name: by_identity[id(old)] for name, old in register.items() if id(old) in by_identity}
    try:
        _put(module, new)
        yield
    finally:
        _put(module, {name: register[name] for name in new})


def stray_tensors(module: nn.Module) -> Iterator[str]:
    """Yield the dotted names of floating tensors that are plain attributes, not registered."""
    for prefix, part in module.named_modules():
        if isinstance(part, nn.RNNBase):
            continue
        for name, value in vars(part).items():
            if isinstance(value, Tensor) and value.is_floating_point() and value.dim() in (1, 2):
                yield f"{prefix}.{name}" if prefix else name


def make_strays_double(module: nn.Module) -> None:
    """Convert the plain tensors too, which `module.double()` does not know of."""
    for name in list(stray_tensors(module)):
        owner, attribute = _owner(module, name)
        setattr(owner, attribute, tensor_at(module, name).detach().cpu().double())


def tensor_at(module: nn.Module, name: str) -> Tensor:
    """Return a parameter or a plain tensor by its dotted name."""
    owner, attribute = _owner(module, name)
    found = getattr(owner, attribute)
    assert isinstance(found, Tensor)
    return found


def _owner(module: nn.Module, name: str) -> tuple[nn.Module, str]:
    place, _, attribute = name.rpartition(".")
    return module.get_submodule(place), attribute


def _put(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        owner, attribute = _owner(module, name)
        if attribute in owner._parameters:
            # past __setattr__, which takes nothing but an nn.Parameter here
            owner._parameters[attribute] = tensor  # type: ignore[assignment]
        else:
            setattr(owner, attribute, tensor)
    for part in module.modules():
        if isinstance(part, nn.RNNBase):
            names = part._flat_weights_names
            part._flat_weights = [part._parameters[name] for name in names]


def float64_copy(module: nn.Module) -> nn.Module:
    """Return a float64 copy in evaluation mode, weights that are no parameters included."""
    with torch.no_grad():
        # to the processor first: some devices have no float64
        twin = (trial_copy(module) or module).eval().cpu().double()
        make_strays_double(twin)
    return twin
