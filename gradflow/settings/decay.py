"""What can be asked of `gradflow decay`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from gradflow.settings.base import Count, Names, Number, Seed, Settings, drop_repeats, split_list
from gradflow.settings.gates import (
    RNN_GAIN_HINT,
    Gain,
    GateValue,
    coupled_or_gate_value,
    require_gain,
    require_gate_value,
)

_GateList = Annotated[tuple[Number, ...], BeforeValidator(split_list), AfterValidator(drop_repeats)]
_GainList = Annotated[tuple[Gain, ...], BeforeValidator(split_list), AfterValidator(drop_repeats)]


class DecaySettings(Settings):
    """What `gradflow decay` measures: every field is the flag of the same name.

    `cell`, `gate` and `candidate_gain` are lists, and a value that comes twice counts once.

    >>> DecaySettings(cell="lstm", gate="0.1,0.5").gate
    (0.1, 0.5)
    """

    cell: Names = Field(("lstm", "gru"), description="the list of cells to measure")
    gate: _GateList = Field(
        (0.1, 0.5, 0.9),
        description="the value of the keep gate (for an RNN: the gain of its recurrent matrix)",
    )
    steps: Count = Field(100, description="the number of time steps T")
    hidden: Count = Field(64, description="the number of hidden units")
    state: str | None = Field(None, description="the part of the state to measure")
    norm: Literal["spectral", "frobenius"] = Field("spectral", description="the matrix norm")
    input_gate: Annotated[float | Literal["coupled"], BeforeValidator(coupled_or_gate_value)] = (
        Field("coupled", description="the value of an LSTM's input gate")
    )
    output_gate: GateValue = Field(0.5, description="the value of an LSTM's output gate")
    reset_gate: GateValue = Field(0.5, description="the value of a GRU's reset gate")
    reset: Literal["after", "before"] = Field(
        "after", description="the place of a GRU's reset gate, before or after the matrix product"
    )
    start: Literal["random", "zero"] = Field("random", description="the state at step 0")
    candidate_gain: _GainList = Field(
        (0.0, 1.0), description="the gain of the candidate's recurrent matrix"
    )
    gate_weights: Gain = Field(0.0, description="the scale of the held gates' random weights")
    method: Literal["auto", "dense", "diagonal", "generic", "jump", "krylov"] = Field(
        "auto", description="the way to measure"
    )
    dtype: Literal["float64", "float32"] = Field("float64", description="the number format")
    device: str = Field("cpu", description="the device to compute on")
    seed: Seed = Field(0, description="the seed of all that is random")
    paths: bool = Field(
        False, description="whether to measure along which paths the gradient travels"
    )
    points: Count | None = Field(
        None, description="the number of log-spaced steps to report, all of them when not given"
    )

    @field_validator("gate")
    @classmethod
    def _require_gates(cls, values: tuple[float, ...], info: ValidationInfo) -> tuple[float, ...]:
        cells = info.data.get("cell", ())
        if cells and all(cell == "rnn" for cell in cells):
            return tuple(require_gain(value) for value in values)
        return tuple(require_gate_value(value, RNN_GAIN_HINT) for value in values)
