"""Finding out how a user's module is called: what it declares, then what it answers to.

What the module does not say is tried on a batch of a few rows. Sizes that nobody tells are looked
for among the sizes of its parameters; a find counts only where a single one works.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from gradflow.cells.call_form import CallForm
from gradflow.cells.declared_form import PROBE_ROWS, Told, is_lazy, read_declarations
from gradflow.errors import CellCallError, CellLoadError

MOST_ATTEMPTS = 4000
LARGEST_SHARE = 8  # a stacked weight may hold up to this many gates
STRANGE_SIZES = (13, 17)  # a cell that takes these takes any width
TELL = "Set self.input_size and self.hidden_size (or state_size, a width per part) in its __init__."


def find_form(
    module: nn.Module,
    *,
    input_size: int | None = None,
    hidden_size: int | None = None,
    sizes_if_free: tuple[int, int] | None = None,
) -> CallForm:
    """Return how the module is called.

    Args:
        module: the user's, in evaluation mode.
        input_size, hidden_size: its widths where the caller knows them.
        sizes_if_free: (input, hidden) to take where the module works at any width.

    Raises:
        CellLoadError: no form works (saying why for the likely ones), or several do.
    """
    told = read_declarations(module, input_size, hidden_size)
    if told.input_size is not None and (told.sizes or told.hidden_size) is not None:
        hidden = told.hidden_size or (told.sizes or (0,))[0]
        return _first_that_works(module, list(told.forms(told.input_size, hidden)))
    if is_lazy(module):
        raise CellLoadError(
            f"{type(module).__name__} has lazy layers, whose widths the first call sets, so it "
            f"must tell them.\n{TELL}"
        )
    return _search(module, told, sizes_if_free)


def float_like(module: nn.Module) -> Tensor:
    """Return a tensor of the dtype and device that the module computes in.

    Those of its first floating parameter, else of its first floating buffer, else torch's default.
    """
    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.is_floating_point():
            return torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return torch.empty(0)


def _first_that_works(module: nn.Module, forms: Sequence[CallForm]) -> CallForm:
    """Return the first form that the module answers to."""
    faults = []
    for form in forms:
        try:
            _attempt(module, form)
        except CellCallError as error:
            faults.append(error)
        else:
            return form
    most_telling = sorted(faults, key=_silence)
    # forms that fail for one and the same reason are one fault
    reasons = {str(fault).partition(": ")[2]: fault for fault in reversed(most_telling)}
    shown = [fault for fault in most_telling if fault in reasons.values()]
    shown = [fault for fault in shown if _silence(fault) == _silence(shown[0])][:2]
    raise CellLoadError(
        f"{type(module).__name__} does not work as a cell with x {forms[0].input_size} wide and a "
        f"state {' + '.join(map(str, forms[0].sizes))} wide.\n" + "\n".join(map(str, shown))
    ) from shown[0]


def _attempt(module: nn.Module, form: CallForm) -> None:
    """Run one step on zeros, without a trace in torch's random numbers or in the module."""
    like = float_like(module)
    x = like.new_zeros(PROBE_ROWS, form.input_size)
    state = tuple(like.new_zeros(PROBE_ROWS, size) for size in form.sizes)
    # the first call fixes the widths of lazy layers
    subject = copy.deepcopy(module) if is_lazy(module) else module
    with torch.no_grad(), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        form.call(subject, x, state)


def _search(module: nn.Module, told: Told, if_free: tuple[int, int] | None) -> CallForm:
    """Return the only form that works among the sizes of the parameters (and strange ones)."""
    found: list[CallForm] = []
    telling: CellCallError | None = None
    for attempt, form in enumerate(_candidates(module, told, extra=if_free)):
        if attempt >= MOST_ATTEMPTS:
            break
        try:
            _attempt(module, form)
        except CellCallError as fault:
            telling = fault if telling is None else min(telling, fault, key=_silence)
        else:
            found.append(form)
    found = _of_widths(found, if_free)
    if len(found) == 1:
        return found[0]
    name = type(module).__name__
    if not found:
        raise CellLoadError(
            f"{name} does not tell its widths, and no width among its parameters' works as a cell."
            f"\n{TELL}\nOne of the tries: {telling}"
        ) from telling
    shown = "; ".join(f"{form}: {form.input_size}, {list(form.sizes)}" for form in found[:3])
    raise CellLoadError(
        f"{name} does not tell its widths, and several work (input, state): {shown}.\n{TELL}"
    )


def _candidates(
    module: nn.Module, told: Told, *, extra: tuple[int, int] | None
) -> Iterator[CallForm]:
    sizes = {size for tensor in module.state_dict().values() for size in tensor.shape}
    free = {*STRANGE_SIZES, *(extra or ())}
    known = told.sizes[:1] if told.sizes else (told.hidden_size,) if told.hidden_size else ()
    for hidden in known or sorted(_shares(sizes) | free):
        # weights on [x, h] are as wide as both together
        rest = {size - hidden for size in sizes if size > hidden}
        inputs = [told.input_size] if told.input_size else sorted(sizes | rest | free)
        for width in inputs:
            yield from told.forms(width, hidden)


def _shares(sizes: set[int]) -> set[int]:
    """Return what each size can be a stack of."""
    shares = range(1, LARGEST_SHARE + 1)
    return {size // share for size in sizes for share in shares if size and size % share == 0}


def _of_widths(found: list[CallForm], wanted: tuple[int, int] | None) -> list[CallForm]:
    """Return the forms of the wanted widths, axis by axis where an axis leaves a choice."""
    if wanted is not None:
        found = [form for form in found if form.input_size == wanted[0]] or found
        found = [form for form in found if form.sizes[0] == wanted[1]] or found
    return found


def _silence(fault: CellCallError) -> int:
    """Return how little a fault says: an answer of the wrong kind says most, a misfit least.

    Forms that are not the cell's fail too, mostly with torch's own words about sizes.
    """
    if fault.__cause__ is None:
        return 2 if "shape" in str(fault) else 0
    if "'tuple' object" in str(fault):  # it wants a tensor, and was tried with several parts
        return 3
    return 3 if isinstance(fault.__cause__, RuntimeError | ValueError | TypeError) else 1
