"""What every test starts from: no settings from outside, one thread, the same random cases."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# One thread each: the tests' matrices are small, and several workers share the machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile(
    "gradflow", deadline=None, derandomize=True, max_examples=50, database=None
)
settings.load_profile("gradflow")


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("GRADFLOW_", "_GRADFLOW_")):
            monkeypatch.delenv(name)
