"""A user's model run with its recurrent layers unrolled: a copy, in float64, in evaluation mode."""

from __future__ import annotations

import contextlib
import copy
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from gradflow.cells import CellLike
from gradflow.checkpoints.find_modules import RecurrentModule, find_modules
from gradflow.checkpoints.layers import Checkpoint, FoundLayer
from gradflow.checkpoints.layers.of_modules import layers_of_model
from gradflow.checkpoints.state_alone import state_of
from gradflow.engine.unrolled import CellTrace, UnrolledLayer
from gradflow.errors import CellLoadError
from gradflow.experiments.inspect.batch import Batch, Layout, call_model
from gradflow.experiments.inspect.fused import output_gap


@dataclass
class Watched:
    """One recurrent module of a model: its layers, and what its cells did in each call.

    `fused_gap` is the largest difference between the unrolled and the fused output, relative to
    the largest output (at least 1); None where there is no fused form. In another dtype than
    float64 it is the fused output in that dtype against the float64 twin's, and `rounding` how far
    the twin in that dtype is from the float64 one.
    """

    name: str
    layers: tuple[FoundLayer, ...]
    calls: list[tuple[CellTrace, ...]] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    fused_gap: float | None = None
    rounding: float | None = None

    def note(self, gap: float, rounding: float) -> None:
        """Keep the largest gaps of all calls; a NaN of the weights is another finding's matter."""
        if math.isfinite(gap) and math.isfinite(rounding):
            self.fused_gap = max(gap, self.fused_gap or 0.0)
            self.rounding = max(rounding, self.rounding or 0.0)

    def traces_of(self, index: int) -> list[CellTrace]:
        """Return what one cell did, call by call."""
        return [call[index] for call in self.calls]


@dataclass(frozen=True)
class TwinRun:
    """A copy of a model in some dtype with unrolled layers, what it answered, what was watched."""

    model: nn.Module
    watched: tuple[Watched, ...]
    answer: Any


def unwrapped(model: nn.Module) -> nn.Module:
    """Return a model without the wrappers of torch.compile and of parallel training."""
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and isinstance(
            model, nn.DataParallel | nn.parallel.DistributedDataParallel
        ):
            inner = model.module
        if not isinstance(inner, nn.Module):
            return model
        model = inner


def found_in(model: nn.Module) -> Checkpoint:
    """Return the recurrent layers of a model, as float64 cells."""
    return layers_of_model(model, find_modules(model))


def run_twin(
    model: nn.Module,
    found: Checkpoint,
    batch: Batch,
    *,
    dtype: torch.dtype,
    device: torch.device | str = "cpu",
    layout: Layout | None = None,
) -> TwinRun:
    """Run a copy of a model in `dtype` with its layers unrolled, and keep every state's node.

    Args:
        model: the user's, which is not touched.
        found: its layers, from `found_in`.
        batch: what it is run on.
        dtype: of the copy: float64, or the model's own.
        device: of the copy, where the cells in `found` are too.
        layout: how a bare layer's padded batch is laid out, where lengths are given.

    Raises:
        CellLoadError: the model cannot be copied, fails on this batch, or calls no layer.
    """
    twin = _copy(model).to(device, dtype).eval()
    for parameter in twin.parameters():
        parameter.requires_grad_(parameter.dtype.is_floating_point)
    search = find_modules(twin)
    watched = [_watch(each, found, dtype) for each in search.found]
    kept = [each for each in watched if each is not None]
    with default_dtype(dtype), torch.enable_grad():
        try:
            answer = call_model(twin, batch.cast(dtype, device), layout)
        except (RuntimeError, ValueError, TypeError, IndexError, KeyError) as problem:
            first = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
            shape = tuple(getattr(batch.inputs, "shape", ()))
            raise CellLoadError(
                f"the model fails on inputs {shape}: {type(problem).__name__}: {first[:200]}"
            ) from problem
    called = tuple(each for each in kept if each.calls)
    if not called:
        names = ", ".join(each.name for each in kept)
        raise CellLoadError(
            f"the model ran and called none of its recurrent layers ({names}), so there is nothing "
            "to measure. Call them as modules: self.rnn(x)."
        )
    return TwinRun(twin, called, answer)


def _copy(model: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(model, _kept_results(model))
    except (RuntimeError, TypeError, NotImplementedError) as problem:
        first = (str(problem).splitlines() or [""])[0]
        raise CellLoadError(
            f"the model cannot be copied, and the measurement never touches yours: {first}\n"
            "Delete tensors with a graph that it keeps as attributes, or make it anew."
        ) from problem


def _kept_results(model: nn.Module) -> dict[int, Any]:
    """Return copies, by identity, of tensors with a graph that parts keep: torch copies none.

    Weight norm keeps the weight that it computed last, and a user keeps an output.
    """
    kept: dict[int, Any] = {}
    for part in model.modules():
        for value in vars(part).values():
            for each in value if isinstance(value, list | tuple) else [value]:
                if isinstance(each, Tensor) and not each.is_leaf:
                    kept[id(each)] = each.detach().clone()
    return kept


def _watch(each: RecurrentModule, found: Checkpoint, dtype: torch.dtype) -> Watched | None:
    """Let a module of the copy be watched; return what it will have done."""
    layers = tuple(layer for layer in found.layers if layer.name == each.name)
    if not layers:
        return None
    watched = Watched(each.name, layers)
    if isinstance(each.module, nn.RNNBase):
        _unroll(each.module, watched, dtype)
    else:
        each.module.register_forward_hook(_recorder(watched), with_kwargs=True)
    return watched


def _unroll(module: nn.RNNBase, watched: Watched, dtype: torch.dtype) -> None:
    """Put the unrolled forward in the place of the fused one, and hold it against that."""
    wide = [layer.cell for layer in watched.layers]
    cells = wide if dtype == torch.float64 else [in_dtype(cell, dtype) for cell in wide]
    directions = 2 if module.bidirectional else 1
    twin = UnrolledLayer(cells, directions=directions, batch_first=module.batch_first)
    exact = UnrolledLayer(wide, directions=directions, batch_first=module.batch_first)
    watched.calls, watched.outputs = twin.calls, twin.outputs

    def forward(x: Any, hx: Any = None) -> Any:
        answer = twin(x, hx)
        with torch.no_grad():
            with warnings.catch_warnings():  # of ways that torch does not take
                warnings.simplefilter("ignore")
                fused = type(module).forward(module, _to(x, dtype), _to(hx, dtype))
            mine = answer
            if dtype != torch.float64:
                mine = exact(_to(x, torch.float64), _to(hx, torch.float64))
                exact.calls.clear()
                exact.outputs.clear()
            watched.note(output_gap(mine[0], fused[0]), output_gap(mine[0], answer[0]))
        return answer

    object.__setattr__(module, "forward", forward)


def _recorder(watched: Watched) -> Callable[..., None]:
    """Return a hook that makes one trace of all calls of a cell, a call a step."""

    def hook(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], answer: Any) -> None:
        x, given = [*args, *kwargs.values(), None][:2]
        after = _parts(state_of(answer, given))
        before = tuple(map(torch.zeros_like, after)) if given is None else _parts(given)
        if x.dim() == 1 or len(before) != len(after):
            return
        if watched.calls and watched.calls[0][0].inputs.shape[1:] == x.shape:
            old = watched.calls[0][0]
            inputs = torch.cat([old.inputs, x.detach().unsqueeze(0)])
            watched.calls[0] = (CellTrace(inputs, old.start, (*old.states, after)),)
        elif not watched.calls:
            watched.calls.append((CellTrace(x.detach().unsqueeze(0), before, (after,)),))

    return hook


def _parts(state: Any) -> tuple[Tensor, ...]:
    return (state,) if isinstance(state, Tensor) else tuple(state)


def in_dtype(cell: CellLike, dtype: torch.dtype) -> CellLike:
    """Return a copy of a cell in a dtype."""
    assert isinstance(cell, nn.Module)
    narrow: Any = copy.deepcopy(cell).to(dtype)
    return narrow  # type: ignore[no-any-return]


def _to(value: Any, dtype: torch.dtype) -> Any:
    if value is None:
        return None
    if isinstance(value, Tensor | PackedSequence):
        return value.to(dtype)
    return tuple(part.to(dtype) for part in value)


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Let a model that makes its own zeros make them in the copy's dtype."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
