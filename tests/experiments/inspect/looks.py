"""What the tests of inspections look at: numbers to run on, and findings by code."""

from __future__ import annotations

import torch
from torch import Tensor

from gradflow.records.inspect import Finding, InspectResult

FINE = "gradient flow is fine; look elsewhere"


def draw(*shape: int, seed: int = 0) -> Tensor:
    """Unit random numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def codes(result: InspectResult, least: str = "warning") -> set[str]:
    """The codes of the findings at or above a severity."""
    return {finding.code for finding in result.worst(least)}


def one(result: InspectResult, code: str) -> Finding:
    """The first finding of a code."""
    return next(finding for finding in result.findings if finding.code == code)
