"""What can be asked of `gradflow explain`."""

from __future__ import annotations

from pydantic import Field

from gradflow.settings.base import Seed, Settings


class ExplainSettings(Settings):
    """Which finding `gradflow explain` explains; all of them by title where None."""

    code: str | None = Field(None, description="the code of a finding")
    seed: Seed = Field(0, description="a seed, which nothing here uses")
