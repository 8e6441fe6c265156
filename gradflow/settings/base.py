"""The ground of every settings model: frozen, unknown keys refused, no number that is not finite.

One model serves the flags of a command, its TOML file and the `config` object of its JSON, so the
three can never disagree. A bad value is a GradflowError whose message names what was wrong.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from gradflow.errors import RequestError
from gradflow.settings.problems import explain_problems

ABSENT_WORDS = ("all", "none")


class Settings(BaseModel):
    """Settings of one command. Subclasses add the fields; a field's description ends its errors.

    Raises:
        SettingError, GateValueError, UnknownNameError: a value or a key that cannot be.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True
    )

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as problem:
            raise explain_problems(problem, type(self).model_fields, {}) from problem

    @model_validator(mode="before")
    @classmethod
    def _take_shown_defaults(cls, values: Any) -> Any:
        """Read the word that the help shows for a default of None, "all" or "none", as that."""
        if not isinstance(values, Mapping):
            return values
        absent = {name for name, field in cls.model_fields.items() if field.default is None}
        return {
            key: None
            if key in absent and isinstance(value, str) and value in ABSENT_WORDS
            else value
            for key, value in values.items()
        }

    @classmethod
    def build(cls, values: Mapping[str, Any], labels: Mapping[str, str]) -> Self:
        """Make the settings from `values`, naming each key in errors as `labels` calls it.

        Args:
            values: key to value, from flags, the environment and a TOML file together.
            labels: key to the name under which the user gave it (`--gate`, `GRADFLOW_GATE`,
                `'gate' in decay.toml`); a key without a label is called by itself.
        """
        try:
            return cls(**values)
        except RequestError as problem:
            if isinstance(problem.__cause__, ValidationError):
                cause = problem.__cause__
                raise explain_problems(cause, cls.model_fields, labels) from None
            raise

    def to_json(self) -> dict[str, Any]:
        """Return every setting in force as plain JSON (tuples are lists, absent ones null)."""
        return self.model_dump(mode="json")

    def digest(self, command: str) -> str:
        """Return the sha256 (64 hex digits) of a command and all its settings, as canonical JSON.

        How a result is stored or shown (`--out`, `--format`, `--quiet`, ...) is no setting, so
        the same measurement has the same digest wherever it goes.
        """
        document = {"command": command, "settings": self.to_json()}
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()


def split_list(value: Any) -> Any:
    """Return a list of single values, from a comma list, a list of comma lists or one value.

    A value that comes twice counts once: measuring it again would add nothing.

    >>> split_list(["0.1,0.5", "0.9", "0.1"])
    ['0.1', '0.5', '0.9']
    >>> split_list(0.5)
    [0.5]
    """
    given = value if isinstance(value, list | tuple) else [value]
    items: list[Any] = []
    for entry in given:
        parts = entry.split(",") if isinstance(entry, str) else [entry]
        for part in parts:
            item = part.strip() if isinstance(part, str) else part
            if item == "":
                raise ValueError(
                    f"must list values between commas, with none left empty; got {value!r}."
                )
            if item not in items:
                items.append(item)
    if not items:
        raise ValueError("must name at least one value, because without one there is no curve.")
    return items


def drop_repeats(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values in order, each once (0.1 and 0.10 are one value).

    >>> drop_repeats((0.5, 0.1, 0.5))
    (0.5, 0.1)
    """
    return tuple(dict.fromkeys(values))


def refuse_truth(value: Any) -> Any:
    """Return `value` unless it is true or false, which Python would read as 1 or 0."""
    if isinstance(value, bool):
        raise ValueError(f"must be a number; got {str(value).lower()}.")
    return value


Number = Annotated[float, BeforeValidator(refuse_truth)]
NonNegative = Annotated[float, BeforeValidator(refuse_truth), Field(ge=0)]
# Above 2^53 a number is no longer exact in JSON readers and in T ln f.
Count = Annotated[int, BeforeValidator(refuse_truth), Field(ge=1, le=2**53)]
# torch's generators take a seed of 64 bits; a negative one would alias a positive one.
Seed = Annotated[int, BeforeValidator(refuse_truth), Field(ge=0, lt=2**63)]
Names = Annotated[tuple[str, ...], BeforeValidator(split_list)]
