"""What can be asked of `gradflow inspect`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gradflow.settings.base import Count, Names, Seed, Settings


class InspectSettings(Settings):
    """What `gradflow inspect` looks at, and what is a failure.

    >>> InspectSettings(file="model.pt", needs_lag=60).needs_lag
    60
    """

    file: str | None = Field(None, description="a file of weights")
    model: str | None = Field(None, description="a module, as file.py:make_model")
    checkpoint: str | None = Field(None, description="the weights for --model")
    data: str | None = Field(None, description="a file of data, or file.py:make_batch")
    window: Count | None = Field(None, description="the steps of one sample of a series")
    target: str | None = Field(None, description="the column of a series that is predicted")
    loss: Literal["mse", "cross_entropy"] | None = Field(None, description="the loss")
    layout: Literal["batch_first", "time_first"] | None = Field(
        None, description="which axis of the data comes first"
    )
    depth: bool = Field(False, description="whether to draw layers against time")
    needs_lag: Count | None = Field(None, description="the number of steps to remember")
    steps: Count = Field(100, description="the number of steps without data")
    nonlinearity: Literal["tanh", "relu"] | None = Field(
        None, description="what a file's plain RNNs squash by"
    )
    fail_on: Literal["warning", "error", "never"] = Field(
        "error", description="the severity that fails the command"
    )
    baseline: str | None = Field(None, description="an old result, whose findings are known")
    select: Names = Field(("GF",), description="the list of codes to look for, or beginnings")
    ignore: Names | None = Field(None, description="the list of codes to leave out")
    device: str = Field("cpu", description="the device to compute on")
    seed: Seed = Field(0, description="the seed of all that is random")
