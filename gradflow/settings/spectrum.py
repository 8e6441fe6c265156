"""What can be asked of `gradflow spectrum`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from gradflow.settings.base import Count, Seed, Settings, refuse_truth
from gradflow.settings.gates import Gain

_Warmup = Annotated[int, BeforeValidator(refuse_truth), Field(ge=0)]


class SpectrumSettings(Settings):
    """What `gradflow spectrum` measures; every field is the flag of the same name.

    >>> SpectrumSettings(cell="rnn", gain=3, count=1).steps is None
    True
    """

    cell: str = Field("lstm", description="the cell to measure")
    checkpoint: str | None = Field(None, description="the file of weights with the cell in it")
    layer: str | None = Field(None, description="the name of the file's layer to measure")
    gain: Gain = Field(
        1.0,
        description="the gain g of a built-in cell's recurrent weights, normal with deviation "
        "g / sqrt(hidden)",
    )
    hidden: Count = Field(64, description="the number of hidden units")
    input_size: Count = Field(1, description="the width of the input")
    input: Literal["zero", "random"] = Field("zero", description="the input where there is no data")
    data: str | None = Field(None, description="the file of a given input")
    steps: Count | None = Field(
        None, description="the number of measured steps: 2000, or all that the data has"
    )
    warmup: _Warmup = Field(500, description="the number of steps before those that are measured")
    count: Count | None = Field(None, description="the number of exponents, all when not given")
    networks: Count = Field(1, description="the number of networks to average over")
    trajectories: Count = Field(1, description="the number of trajectories of each network")
    start: Literal["random", "zero"] = Field("random", description="the state at step 0")
    reset: Literal["after", "before"] = Field(
        "after", description="the place of a GRU's reset gate, before or after the matrix product"
    )
    dtype: Literal["float64", "float32"] = Field(
        "float64", description="the number format of the trajectory"
    )
    device: str = Field("cpu", description="the device to compute on")
    seed: Seed = Field(0, description="the seed of all that is random")
