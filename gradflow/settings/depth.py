"""What can be asked of `gradflow depth`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from gradflow.settings.base import Count, Names, Seed, Settings, refuse_truth
from gradflow.settings.problems import show
from gradflow.settings.schemes import read_scheme, scheme_name

Rate = Annotated[float, BeforeValidator(refuse_truth), Field(ge=0, lt=1)]


def _one_name(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError(f"must be the name of an initialization; got {show(value)}.")
    return scheme_name(read_scheme(value))


class DepthSettings(Settings):
    """What `gradflow depth` measures; every field is the flag of the same name.

    >>> DepthSettings(cell="gru", init="forget-bias").init
    'forget-bias:1'
    """

    cell: Names = Field(("lstm",), description="the list of cells to stack")
    layers: Count = Field(3, description="the number of layers")
    bidirectional: bool = Field(
        False, description="whether every layer reads the sequence both ways"
    )
    residual: Literal["both", "yes", "no"] = Field(
        "both", description="whether layers have residual links, or both to compare"
    )
    hidden: Count = Field(32, description="the number of hidden units of each cell")
    input_size: Count = Field(16, description="the width of the input")
    init: Annotated[str, BeforeValidator(_one_name)] = Field(
        "torch-default", description="the initialization of built-in cells"
    )
    dropout: Rate = Field(0.0, description="the rate of dropout between layers")
    recurrent_dropout: Rate = Field(
        0.0, description="the rate of dropout on the old h where gates and candidate read it"
    )
    masks: Literal["both", "step", "sequence"] = Field(
        "both", description="how long a dropout mask lasts: a step, a sequence, or both to compare"
    )
    steps: Count = Field(50, description="the number of time steps T")
    batch: Count = Field(8, description="the number of samples")
    shortest: Count | None = Field(
        None, description="the length of the shortest sample, all equally long when not given"
    )
    read: Literal[
        "state", "output", "forward state", "reverse state", "forward output", "reverse output"
    ] = Field("state", description="what is read at the end, of the last layer")
    state: str | None = Field(
        None, description="the part of the states, all parts jointly when not given"
    )
    norm: Literal["spectral", "frobenius"] = Field("spectral", description="the matrix norm")
    reset: Literal["after", "before"] = Field(
        "after", description="the place of a GRU's reset gate, before or after the matrix product"
    )
    dtype: Literal["float64", "float32"] = Field("float64", description="the number format")
    device: str = Field("cpu", description="the device to compute on")
    seed: Seed = Field(0, description="the seed of all that is random")

    @field_validator("shortest")
    @classmethod
    def _require_shorter(cls, value: int | None, info: ValidationInfo) -> int | None:
        steps = info.data.get("steps")
        if value is not None and info.data.get("batch") == 1 and value != steps:
            raise ValueError(
                f"needs a second sample, because the longest always has --steps; got {value} with "
                "a --batch of 1. Use --steps alone, or a larger --batch."
            )
        if value is not None and steps is not None and value > steps:
            raise ValueError(
                f"must be at most --steps, which is {steps}, because no sample is longer than the "
                f"batch; got {value}."
            )
        return value
