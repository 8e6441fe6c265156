"""What was measured, as frozen records: NumPy only, one kind of result per file."""

from gradflow.records.base import Check, Json, Result
from gradflow.records.decay import AutogradCheck, DecayCurve, DecayResult
from gradflow.records.saturate import FirstNonfinite, SaturateResult, SaturateRow

__all__ = [
    "AutogradCheck",
    "Check",
    "DecayCurve",
    "DecayResult",
    "FirstNonfinite",
    "Json",
    "Result",
    "SaturateResult",
    "SaturateRow",
]
