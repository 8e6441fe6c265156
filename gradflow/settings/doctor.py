"""What can be asked of `gradflow doctor`."""

from __future__ import annotations

from pydantic import Field

from gradflow.settings.base import Seed, Settings


class DoctorSettings(Settings):
    """What `gradflow doctor` tries; every field is the flag of the same name."""

    seed: Seed = Field(0, description="the seed of the numbers that each dtype is tried with")
