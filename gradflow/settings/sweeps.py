"""How a sweep runs: where, on how many processes, and whether failures are tried again.

No row depends on these, so they are no settings of a command and not in its digest.
"""

from __future__ import annotations

from pydantic import Field

from gradflow.settings.base import Count, Settings


class SweepOptions(Settings):
    """How a sweep runs; every field is the flag of the same name.

    >>> SweepOptions(workers="2").workers
    2
    """

    executor: str = Field("local", description="where tasks run")
    workers: Count | None = Field(None, description="the number of worker processes")
    retry_failed: bool = Field(False, description="whether failed tasks are done again")
    dry_run: bool = Field(False, description="whether to say only what would be done")
