"""What can be asked of `gradflow parity`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from gradflow.settings.base import Count, Seed, Settings, refuse_truth

Tolerance = Annotated[float, BeforeValidator(refuse_truth), Field(gt=0)]


class ParitySettings(Settings):
    """What `gradflow parity` compares; `a` and `b` are the two sides, every other field a flag.

    >>> ParitySettings(a="lstm.py:lstm_step", b="torch.LSTMCell").tolerance
    1e-10
    """

    a: str = Field("gru", description="the first side, the reference")
    b: str | None = Field(None, description="the second side, torch's own cell when not given")
    weights: str = Field(
        "auto",
        description="'random' weights, each side's 'own', or a file of weights for both; by "
        "itself a file's where a side is one, else 'random'",
    )
    weight_map: str | None = Field(
        None, description="how B's weights are filled from A's: a file, or file.py:function"
    )
    gate_order: str | None = Field(
        None, description="the order of the gates in B's stacked weights, as in i,f,o,g"
    )
    data: str | None = Field(None, description="a file with the inputs x and a first state")
    input_size: Count | None = Field(None, description="the width of the input")
    hidden: Count | None = Field(None, description="the number of hidden units")
    steps: Count = Field(5, description="the number of time steps")
    batch: Count = Field(3, description="the number of rows, each of them different")
    start: Literal["random", "zero"] = Field("random", description="the state before step 1")
    bias: Literal["random", "zero"] = Field("random", description="the biases that are drawn")
    tolerance: Tolerance = Field(1e-10, description="the largest error that counts as equal")
    seed: Seed = Field(0, description="the seed of all that is random")
