"""What can be asked of `gradflow watch`, and of `gradflow.watch` in a training."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gradflow.settings.base import Count, Seed, Settings


class WatchSettings(Settings):
    """Which recorded training `gradflow watch` shows, and how it is judged.

    >>> WatchSettings(log="runs/watch-1/watch.jsonl").state
    'h'
    """

    log: str | None = Field(None, description="a log, or the run folder that holds it")
    state: Literal["h", "c"] = Field("h", description="the state whose gradient is drawn")
    needs_lag: Count | None = Field(None, description="the number of steps to remember")
    fail_on: Literal["warning", "error", "never"] = Field(
        "never", description="the severity that fails the command"
    )
    seed: Seed = Field(0, description="the seed of all that is random: nothing is")


class WatchingSettings(Settings):
    """How a training is watched; the log's header holds it.

    >>> WatchingSettings(every=10).needs_lag is None
    True
    """

    every: Count = Field(100, description="the number of updates from sample to sample")
    needs_lag: Count | None = Field(None, description="the number of steps to remember")
