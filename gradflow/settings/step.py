"""What can be asked of `gradflow step`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from gradflow.settings.base import Number, Seed, Settings
from gradflow.settings.gates import read_number

DEFAULTS: dict[str, dict[str, Any]] = {
    "lstm": {
        "c": 1.0,
        "forget_gate": (0.9,),
        "input_gate": "coupled",
        "output_gate": (0.5,),
    },
    "gru": {"h": 1.0, "update_gate": (0.9,), "convention": "keep"},
}
"""What each cell takes beside the candidate, and what stands for a value that is not given."""

_WHY = {
    "h": "its gates and candidate are given here, and nothing else reads h; start it with --c",
    "c": "it has no cell state; start it with --h",
    "update_gate": "it keeps by --forget-gate",
    "convention": "it keeps by f and writes by i, whatever the paper",
    "forget_gate": "it keeps by --update-gate",
    "input_gate": "it writes by 1 - z",
    "output_gate": "it shows all of its state",
}


def read_sequence(value: Any) -> Any:
    """Return one number per step, from a comma list, a list of comma lists or one value.

    Unlike in other lists, a value that comes twice counts twice: each is a step of its own.

    >>> read_sequence("0.9,0.8,0.9")
    (0.9, 0.8, 0.9)
    """
    given = value if isinstance(value, list | tuple) else [value]
    parts = [
        part
        for entry in given
        for part in (entry.split(",") if isinstance(entry, str) else [entry])
    ]
    if not parts:
        raise ValueError("must have at least one value, because each makes a step.")
    return tuple(read_number(part) for part in parts)


def read_gates(value: Any) -> Any:
    """Return one gate value per step; both ends are allowed, as limits that paper may use."""
    return None if value is None else _between(read_sequence(value), 0, "a sigmoid")


def read_candidates(value: Any) -> Any:
    """Return one candidate per step."""
    return _between(read_sequence(value), -1, "a tanh")


def read_input_gate(value: Any) -> Any:
    """Return "coupled" (1 - forget gate), or one gate value per step."""
    texts = value if isinstance(value, list | tuple) else [value]
    if [str(text).strip().lower() for text in texts] == ["coupled"]:
        return "coupled"
    return read_gates(value)


def _between(values: tuple[float, ...], low: int, squash: str) -> tuple[float, ...]:
    for value in values:
        if not low <= value <= 1:
            raise ValueError(
                f"must lie between {low} and 1, because {squash} is never beyond; got {value:g}."
            )
    return values


Gates = Annotated[tuple[float, ...], BeforeValidator(read_gates)]


class StepSettings(Settings):
    """What `gradflow step` works by hand; every field is the flag of the same name.

    A gate or candidate has one value, for all steps, or one per step. What belongs to the other
    cell is None and may not be given.

    >>> StepSettings(forget_gate="0.9,0.8").forget_gate, StepSettings(cell="gru").update_gate
    ((0.9, 0.8), (0.9,))
    """

    cell: Literal["lstm", "gru"] = Field("lstm", description="the cell to step")
    c: Number | None = Field(None, description="the LSTM's cell state before the first step")
    h: Number | None = Field(None, description="the GRU's state before the first step")
    forget_gate: Gates | None = Field(None, description="an LSTM's forget gate")
    input_gate: Annotated[
        tuple[float, ...] | Literal["coupled"] | None, BeforeValidator(read_input_gate)
    ] = Field(None, description="an LSTM's input gate, or 'coupled' for 1 - forget gate")
    output_gate: Gates | None = Field(None, description="an LSTM's output gate")
    update_gate: Gates | None = Field(None, description="a GRU's update gate z")
    candidate: Annotated[tuple[float, ...], BeforeValidator(read_candidates)] = Field(
        (0.0,), description="the candidate, g or n"
    )
    convention: Literal["keep", "write"] | None = Field(
        None, description="whether a GRU's z keeps the old state (torch) or writes the new"
    )
    figure: bool = Field(False, description="whether the cell is drawn")
    seed: Seed = Field(0, description="the seed of all that is random; here nothing is")

    @field_validator(*_WHY)
    @classmethod
    def _require_of_cell(cls, value: Any, info: ValidationInfo) -> Any:
        return _of_cell(value, info)

    @field_validator("forget_gate", "input_gate", "output_gate", "update_gate", "candidate")
    @classmethod
    def _require_length(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, tuple) or len(value) == 1:
            return value
        for name, other in info.data.items():
            if isinstance(other, tuple) and len(other) not in (1, len(value)):
                flag = "--" + name.replace("_", "-")
                raise ValueError(
                    f"must have one value, or one per step like {flag}, which has {len(other)}; "
                    f"got {len(value)}."
                )
        return value


def _of_cell(value: Any, info: ValidationInfo) -> Any:
    """Return the value, or the cell's own where none is given; refuse what the cell has not."""
    cell, name = info.data.get("cell"), info.field_name or ""
    if cell is None:
        return value
    if value is None:
        return DEFAULTS[cell].get(name)
    if name not in DEFAULTS[cell]:
        article = {"lstm": "an LSTM", "gru": "a GRU"}[cell]
        raise ValueError(f"is not for {article}, because {_WHY[name]}.")
    return value
