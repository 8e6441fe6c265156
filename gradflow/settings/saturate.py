"""What can be asked of `gradflow saturate`."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from gradflow.settings.base import Count, Names, Seed, Settings, drop_repeats, split_list
from gradflow.settings.gates import read_number

_DtypeName = Literal["float16", "bfloat16", "float32", "float64"]


def magnitude_name(value: Any) -> str:
    """Return a magnitude under its one name: "max", or the number in scientific notation.

    >>> magnitude_name("100"), magnitude_name(2.5e4), magnitude_name("MAX")
    ('1e2', '2.5e4', 'max')

    Raises:
        ValueError: neither "max" nor a positive finite number.
    """
    if isinstance(value, str) and value.strip().lower() == "max":
        return "max"
    try:
        number = read_number(value)
    except ValueError as problem:
        message = str(problem).replace("like 0.9", "like 1e4, or 'max'")
        raise ValueError(message) from None
    if number <= 0:
        raise ValueError(
            f"must be greater than 0, because both signs are tried anyway; got {number:g}. "
            "Use 1e4, or 'max' for the dtype's largest finite number."
        )
    _, digits, _ = Decimal(repr(number)).normalize().as_tuple()
    exponent = Decimal(repr(number)).adjusted()
    mantissa = f"{digits[0]}.{''.join(map(str, digits[1:]))}" if len(digits) > 1 else f"{digits[0]}"
    return f"{mantissa}e{exponent}"


class SaturateSettings(Settings):
    """What `gradflow saturate` tries: every field is the flag of the same name.

    `cell`, `dtype` and `magnitude` are lists, and a value that comes twice counts once.

    >>> SaturateSettings(magnitude="100,max").magnitude
    ('1e2', 'max')
    """

    cell: Names = Field(("lstm", "gru", "rnn"), description="the list of cells to try")
    dtype: Annotated[tuple[_DtypeName, ...], BeforeValidator(split_list)] = Field(
        ("float16", "bfloat16", "float32", "float64"), description="the list of number formats"
    )
    magnitude: Annotated[
        tuple[Annotated[str, BeforeValidator(magnitude_name)], ...],
        BeforeValidator(split_list),
        AfterValidator(drop_repeats),
    ] = Field(("1e2", "1e4", "1e8", "max"), description="the size of what is put in")
    steps: Count = Field(4, description="the number of time steps")
    hidden: Count = Field(8, description="the number of hidden units")
    input_size: Count = Field(8, description="the width of the input")
    batch: Count = Field(3, description="the number of samples")
    beyond: bool = Field(
        False, description="whether inputs and states go up to the largest finite number itself"
    )
    device: str = Field("cpu", description="the device to compute on")
    seed: Seed = Field(0, description="the seed of all that is random")
