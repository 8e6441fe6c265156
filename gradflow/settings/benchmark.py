"""What can be asked of `gradflow benchmark`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from gradflow.settings.base import (
    Count,
    Names,
    NonNegative,
    Number,
    Seed,
    Settings,
    drop_repeats,
    split_list,
)
from gradflow.settings.problems import show
from gradflow.settings.schemes import read_scheme, scheme_name


def _scheme(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError(f"must be names of initializations; got {show(value)}.")
    return scheme_name(read_scheme(value))


def _ascending(delays: tuple[int, ...]) -> tuple[int, ...]:
    """Return delays from short to long, each once: tables and figures go by their order."""
    return tuple(sorted(set(delays)))


_Scheme = Annotated[str, BeforeValidator(_scheme)]
_Rate = Annotated[Number, Field(gt=0)]
_Letters = Annotated[Count, Field(ge=2)]


class BenchmarkSettings(Settings):
    """What `gradflow benchmark` compares; every field is the flag of the same name.

    Everything but the cell, the initialization and the width is shared by all models. `cell`,
    `init`, `delay` and `learning_rate` are lists, and a value that comes twice counts once; delays
    are sorted.

    >>> BenchmarkSettings(learning_rate="1e-2,0.01,0.001").learning_rate
    (0.01, 0.001)
    >>> BenchmarkSettings(delay="50,10").delay
    (10, 50)
    """

    task: Literal["copy", "signal", "adding"] = Field(
        "copy", description="the task that is learned"
    )
    delay: Annotated[tuple[Count, ...], BeforeValidator(split_list), AfterValidator(_ascending)] = (
        Field((1, 10, 50), description="the list of delays T, in steps")
    )
    cell: Names = Field(("rnn", "gru", "lstm"), description="the list of cells to compare")
    init: Annotated[
        tuple[_Scheme, ...], BeforeValidator(split_list), AfterValidator(drop_repeats)
    ] = Field(("torch-default",), description="the list of initializations")
    hidden: Count = Field(64, description="the hidden width that all cells have in one table")
    match: str | None = Field(
        None, description="the cell, as lstm:64, or the number of parameters to match widths to"
    )
    symbols: Count = Field(5, description="the number N of symbols to copy")
    alphabet: _Letters = Field(8, description="the number K of symbols there are to copy")
    distractors: Count = Field(5, description="the number of distractor tokens of the signal task")
    encoding: Literal["embedding", "one-hot"] = Field(
        "embedding", description="the form in which tokens enter"
    )
    embedding: Count = Field(16, description="the width of a token's embedding")
    learning_rate: Annotated[
        tuple[_Rate, ...], BeforeValidator(split_list), AfterValidator(drop_repeats)
    ] = Field((0.001, 0.003, 0.01), description="the grid of learning rates")
    optimizer: Literal["adam", "rmsprop", "sgd"] = Field("adam", description="the optimizer")
    clip: NonNegative = Field(1.0, description="the gradient norm that is clipped to, 0 for none")
    batch: Count = Field(64, description="the number of sequences of an update")
    updates: Count = Field(2000, description="the largest number of updates")
    evaluate_every: Count = Field(50, description="the number of updates between two validations")
    patience: Count = Field(
        1000, description="the number of updates after which training without progress stops"
    )
    train_size: Count = Field(20000, description="the number of training sequences")
    validation_size: Count = Field(1000, description="the number of validation sequences")
    test_size: Count = Field(2000, description="the number of test sequences")
    overlap: Literal["never", "where-unavoidable"] = Field(
        "never", description="whether sets may share sequences where there are too few to part"
    )
    seeds: Count = Field(3, description="the number of seeds of every model")
    seed: Seed = Field(0, description="the seed of all that is random")
