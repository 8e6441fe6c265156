"""What can be asked of `gradflow inits`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from gradflow.errors import nearest_name
from gradflow.settings.base import (
    Count,
    Number,
    Seed,
    Settings,
    drop_repeats,
    refuse_truth,
    split_list,
)
from gradflow.settings.problems import show
from gradflow.settings.schemes import read_scheme, scheme_name

CELLS = ("lstm", "gru", "rnn")
DEFAULT_SCHEMES = (
    "torch-default",
    "xavier",
    "he",
    "orthogonal-per-gate",
    "orthogonal-stacked",
    "scaled-identity:0.95",
    "forget-bias:1",
    "forget-bias:2",
    "forget-bias:5",
    "chrono:100",
    "as-commonly-copied",
)


def _require_cell(value: Any) -> Any:
    if value not in CELLS:
        raise ValueError(
            "must name a cell whose gates the initializations know; "
            f"got {show(value)}. {nearest_name(str(value), CELLS)}"
        )
    return value


def _one_name(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError(f"must be names of initializations; got {show(value)}.")
    return scheme_name(read_scheme(value))


Cell = Annotated[str, BeforeValidator(_require_cell)]
Scheme = Annotated[str, BeforeValidator(_one_name)]


class InitsSettings(Settings):
    """What `gradflow inits` compares; every field is the flag of the same name.

    `cell` and `init` are lists, and a value that comes twice counts once.

    >>> InitsSettings(init="chrono, forget-bias").init
    ('chrono:100', 'forget-bias:1')
    """

    cell: Annotated[tuple[Cell, ...], BeforeValidator(split_list)] = Field(
        ("lstm",), description="the list of cells to initialize"
    )
    init: Annotated[
        tuple[Scheme, ...], BeforeValidator(split_list), AfterValidator(drop_repeats)
    ] = Field(DEFAULT_SCHEMES, description="the list of initializations to compare")
    steps: Count = Field(300, description="the number of time steps T")
    hidden: Count = Field(64, description="the number of hidden units")
    input_size: Count = Field(8, description="the width of the input")
    seeds: Count = Field(5, description="the number of draws of each initialization")
    input: Literal["normal", "zero"] = Field(
        "normal", description="the input, the same for all: standard normal numbers, or zero"
    )
    start: Literal["random", "zero"] = Field("random", description="the state at step 0")
    state: str | None = Field(None, description="the part of the state to measure")
    norm: Literal["spectral", "frobenius"] = Field("spectral", description="the matrix norm")
    threshold: Annotated[Number, Field(gt=0, lt=1), BeforeValidator(refuse_truth)] = Field(
        1e-3, description="the norm at which a gradient counts as gone"
    )
    reset: Literal["after", "before"] = Field(
        "after", description="the place of a GRU's reset gate, before or after the matrix product"
    )
    dtype: Literal["float64", "float32"] = Field("float64", description="the number format")
    device: str = Field("cpu", description="the device to compute on")
    seed: Seed = Field(0, description="the seed of all that is random")
