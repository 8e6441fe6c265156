"""What can be asked of `gradflow params`."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from gradflow.settings.base import Count, Names, Seed, Settings, refuse_truth
from gradflow.settings.problems import show

VALUE_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
MOST_LAYERS = 10_000  # each of them is built by torch, to be counted
_MATCH = re.compile(r"([A-Za-z][\w-]*:)?0*[1-9][0-9]*")


def match_text(value: Any) -> Any:
    """Return what to match as text: a cell and its width, or a number of parameters.

    >>> match_text(" lstm:128"), match_text(71680)
    ('lstm:128', '71680')

    Raises:
        ValueError: neither.
    """
    if value is None:
        return None
    text = str(refuse_truth(value)).strip()
    if not _MATCH.fullmatch(text) or len(text) > 100:
        raise ValueError(
            "must be a cell and its width, such as lstm:128, or a number of parameters, such as "
            f"71680, because that is what widths are matched to; got {show(value)}."
        )
    return text


NoneOrMore = Annotated[int, BeforeValidator(refuse_truth), Field(ge=0)]


class ParamsSettings(Settings):
    """What `gradflow params` counts; every field is the flag of the same name.

    >>> ParamsSettings(cell="gru", match=71680).match
    '71680'
    """

    cell: Names = Field(("rnn", "gru", "lstm"), description="the list of cells to count")
    input_size: Count = Field(10, description="the width of the input")
    hidden: Count = Field(128, description="the number of hidden units")
    layers: Annotated[Count, Field(le=MOST_LAYERS)] = Field(1, description="the number of layers")
    bidirectional: bool = Field(False, description="whether the sequence is read both ways")
    projection: NoneOrMore = Field(
        0, description="the width to which an LSTM projects h, 0 for none"
    )
    output_size: NoneOrMore = Field(0, description="the width of a linear head, 0 for none")
    bias: bool = Field(True, description="whether the cells have biases at all")
    one_bias: bool = Field(
        False, description="whether one bias vector per gate is counted, and not torch's two"
    )
    match: Annotated[str | None, BeforeValidator(match_text)] = Field(
        None, description="a cell and width, or a number of parameters, to find widths for"
    )
    batch: Count = Field(1, description="the number of samples whose activations are kept")
    steps: Count = Field(1, description="the number of time steps whose activations are kept")
    dtype: Literal["float64", "float32", "bfloat16", "float16"] = Field(
        "float32", description="the number format, for memory"
    )
    seed: Seed = Field(0, description="the seed of all that is random; here nothing is")

    @field_validator("projection")
    @classmethod
    def _require_narrower(cls, value: int, info: ValidationInfo) -> int:
        hidden = info.data.get("hidden")
        if hidden is not None and value >= hidden > 0 and value > 0:
            raise ValueError(
                f"must be smaller than --hidden, which is {hidden}, because it narrows h; "
                f"got {value}."
            )
        return value
