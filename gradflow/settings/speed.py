"""What can be asked of `gradflow speed`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from gradflow.settings.base import Count, Seed, Settings, drop_repeats, split_list

BuiltIn = Literal["lstm", "gru", "rnn"]
Dtype = Literal["float64", "float32"]
SpeedMethod = Literal["restart", "chain", "chain-vmap", "unroll", "gradflow", "floor"]
METHODS: tuple[SpeedMethod, ...] = (
    "restart",
    "chain",
    "chain-vmap",
    "unroll",
    "gradflow",
    "floor",
)

_Cells = Annotated[tuple[BuiltIn, ...], BeforeValidator(split_list), AfterValidator(drop_repeats)]
_Counts = Annotated[tuple[Count, ...], BeforeValidator(split_list), AfterValidator(drop_repeats)]
# torch dies, without a word, of more threads than a system gives to one program
_Threads = Annotated[
    tuple[Annotated[Count, Field(le=1024)], ...],
    BeforeValidator(split_list),
    AfterValidator(drop_repeats),
]
_Dtypes = Annotated[tuple[Dtype, ...], BeforeValidator(split_list), AfterValidator(drop_repeats)]
_Methods = Annotated[
    tuple[SpeedMethod, ...], BeforeValidator(split_list), AfterValidator(drop_repeats)
]


class SpeedSettings(Settings):
    """What `gradflow speed` times: every field is the flag of the same name.

    `cell`, `hidden`, `steps`, `dtype`, `threads` and `method` are lists; each combination of the
    first five is a case, in which all methods are timed in turns.

    >>> SpeedSettings(hidden="64,128", threads=1).hidden
    (64, 128)
    """

    cell: _Cells = Field(("lstm",), description="the list of cells to time")
    hidden: _Counts = Field((32, 64, 128), description="the numbers of hidden units")
    steps: _Counts = Field((50, 200), description="the numbers of time steps T")
    dtype: _Dtypes = Field(("float64",), description="the number formats")
    threads: _Threads = Field((2,), description="the numbers of threads to compute with")
    method: _Methods = Field(METHODS, description="the list of methods to time")
    rounds: Count = Field(5, description="the number of rounds, in each of which all are timed")
    device: str = Field("cpu", description="the device to compute on")
    seed: Seed = Field(0, description="the seed of all that is random")
