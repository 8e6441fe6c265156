"""What can be asked of `gradflow runs`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from gradflow.errors import SettingError
from gradflow.settings.base import Names, Seed, Settings, refuse_truth

_COMPARE = "compare"


def _as_words(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


_Words = Annotated[tuple[str, ...], BeforeValidator(_as_words)]
_Factor = Annotated[float, BeforeValidator(refuse_truth), Field(gt=0)]


class RunsSettings(Settings):
    """Which runs `gradflow runs` lists or compares.

    >>> RunsSettings(what=("compare", "runs/a", "runs/b")).folders()
    ('runs/a', 'runs/b')
    """

    what: _Words = Field((), description="a sweep's run folder; or compare, and two run folders")
    failed: bool = Field(False, description="list only tasks that failed")
    metric: Names = Field(
        ("seconds",), description="the numbers that are listed or compared, by their names"
    )
    factor: _Factor | None = Field(
        None, description="how many times the first run's number the second run's may be"
    )
    seed: Seed = Field(0, description="a seed, which nothing here uses")

    def folders(self) -> tuple[str, ...]:
        """Return the one folder that is to be listed, or the two that are to be compared.

        Raises:
            SettingError: there is no folder, or there are too many.
        """
        if len(self.what) == 1:
            return self.what
        if len(self.what) == 3 and self.what[0] == _COMPARE:
            return self.what[1:]
        raise SettingError(
            "gradflow runs takes the run folder of a sweep, or the word compare and two run "
            f"folders; got {' '.join(self.what) or 'neither'}. "
            "Such as: gradflow runs runs/benchmark-1a2b3c4d"
        )
