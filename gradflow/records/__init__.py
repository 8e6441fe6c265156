"""What was measured, as frozen records: NumPy only, one kind of result per file."""

from gradflow.records.base import Check, Json, Result
from gradflow.records.decay import AutogradCheck, DecayCurve, DecayResult

__all__ = ["AutogradCheck", "Check", "DecayCurve", "DecayResult", "Json", "Result"]
