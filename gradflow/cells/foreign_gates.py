"""The gates that a user's module shows while it runs: `gate_values(x, state)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from gradflow.cells.call_form import CallForm
from gradflow.cells.declared_form import attribute_of
from gradflow.cells.foreign_checks import Probe
from gradflow.cells.gates import Gate
from gradflow.cells.shapes import State
from gradflow.cells.user_code import describe_fault
from gradflow.errors import CellCallError, CellLoadError, nearest_name


def call_gate_values(
    module: nn.Module, form: CallForm, x: Tensor, state: State
) -> dict[str, Tensor]:
    """Return what the module's `gate_values` shows, or nothing where it has none.

    Raises:
        CellCallError: the call fails, or answers with anything but a dict of tensors with a row
            for every row of x.
    """
    show = attribute_of(module, "gate_values")
    if not callable(show):
        return {}
    try:
        values = show(x, form.pack(state))
    except (Exception, SystemExit) as error:
        raise CellCallError(f"gate_values(x, state) failed: {describe_fault(error)}") from error
    if not isinstance(values, Mapping):
        raise CellCallError(
            "gate_values(x, state) must return a dict of tensors, one per gate; "
            f"got {type(values).__name__}."
        )
    for name, value in values.items():
        if not isinstance(name, str):
            raise CellCallError(
                f"gate_values(x, state) names each gate by a text, such as 'forget'; got {name!r}."
            )
        if not isinstance(value, Tensor) or value.dim() != 2 or value.shape[0] != x.shape[0]:
            got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise CellCallError(
                f"gate_values(x, state) must return (batch, width) tensors, here "
                f"{x.shape[0]} rows; {name!r} is {got}."
            )
    return dict(values)


def require_gate_widths(probe: Probe, gates: Sequence[Gate], hidden_size: int) -> None:
    """Raise unless declared and shown gates agree, and the keep gate fits the kept part.

    Raises:
        CellLoadError: a shown gate that is not declared, or a keep gate of another width.
    """
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        shown = call_gate_values(probe.module, probe.form, probe.x, probe.state)
    names = [gate.name for gate in gates]
    for name in shown:
        if names and name not in (*names, "candidate"):
            known = nearest_name(name, names)
            raise CellLoadError(f"gate_values shows a gate {name!r} not declared. {known}")
    for gate in gates:
        widths = [rows.bias_of(probe.module).shape[-1] for rows in gate.bias[:1]]
        widths += [shown[gate.name].shape[-1]] if gate.name in shown else []
        for width in widths if gate.role == "keep" else ():
            if width not in (1, hidden_size):
                raise CellLoadError(
                    f"the keep gate {gate.name!r} multiplies the kept part, which is "
                    f"{hidden_size} wide; the gate is {width} wide. Check its rows, and kept_part."
                )
