"""What was measured, as frozen records: NumPy only, one kind of result per file."""

from gradflow.records.base import Check, Json, Result
from gradflow.records.decay import AutogradCheck, DecayCurve, DecayResult
from gradflow.records.params import (
    Architecture,
    ParameterCount,
    ParamsResult,
    WidthMatch,
    Workload,
)
from gradflow.records.saturate import FirstNonfinite, SaturateResult, SaturateRow
from gradflow.records.spectrum import SpectrumInput, SpectrumResult
from gradflow.records.step import Equation, StepResult, WorkedStep

__all__ = [
    "Architecture",
    "AutogradCheck",
    "Check",
    "DecayCurve",
    "DecayResult",
    "Equation",
    "FirstNonfinite",
    "Json",
    "ParameterCount",
    "ParamsResult",
    "Result",
    "SaturateResult",
    "SaturateRow",
    "SpectrumInput",
    "SpectrumResult",
    "StepResult",
    "WidthMatch",
    "WorkedStep",
    "Workload",
]
