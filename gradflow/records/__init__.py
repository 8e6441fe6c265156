"""What was measured, as frozen records: NumPy only, one kind of result per file."""

from gradflow.records.base import Check, Json, Result
from gradflow.records.benchmark import BenchmarkModel, BenchmarkResult, BenchmarkRow
from gradflow.records.benchmark_runs import BenchmarkRun
from gradflow.records.decay import AutogradCheck, DecayCurve, DecayResult
from gradflow.records.depth import DepthMap, DepthResult, DepthRow
from gradflow.records.distributions import Distribution, PerSeed
from gradflow.records.inits import GateFlow, InitFlow, InitsResult
from gradflow.records.inspect import Finding, InspectedGate, InspectedLayer, InspectResult
from gradflow.records.params import (
    Architecture,
    ParameterCount,
    ParamsResult,
    WidthMatch,
    Workload,
)
from gradflow.records.parity import (
    ComparedSide,
    Comparison,
    FirstDifference,
    MappedBlock,
    ParityResult,
    TriedVariant,
)
from gradflow.records.report import LeftOut, ReportResult, ShownResult, StoredRun
from gradflow.records.saturate import FirstNonfinite, SaturateResult, SaturateRow
from gradflow.records.spectrum import SpectrumInput, SpectrumResult
from gradflow.records.speed import SpeedCase, SpeedRatio, SpeedResult, SpeedRow
from gradflow.records.step import Equation, StepResult, WorkedStep
from gradflow.records.watch import BrokenTensor, FlowFinding, FlowLayer, FlowSample, WatchRun

__all__ = [
    "Architecture",
    "AutogradCheck",
    "BenchmarkModel",
    "BenchmarkResult",
    "BenchmarkRow",
    "BenchmarkRun",
    "BrokenTensor",
    "Check",
    "ComparedSide",
    "Comparison",
    "DecayCurve",
    "DecayResult",
    "DepthMap",
    "DepthResult",
    "DepthRow",
    "Distribution",
    "Equation",
    "Finding",
    "FirstDifference",
    "FirstNonfinite",
    "FlowFinding",
    "FlowLayer",
    "FlowSample",
    "GateFlow",
    "InitFlow",
    "InitsResult",
    "InspectResult",
    "InspectedGate",
    "InspectedLayer",
    "Json",
    "LeftOut",
    "MappedBlock",
    "ParameterCount",
    "ParamsResult",
    "ParityResult",
    "PerSeed",
    "ReportResult",
    "Result",
    "SaturateResult",
    "SaturateRow",
    "ShownResult",
    "SpectrumInput",
    "SpectrumResult",
    "SpeedCase",
    "SpeedRatio",
    "SpeedResult",
    "SpeedRow",
    "StepResult",
    "StoredRun",
    "TriedVariant",
    "WatchRun",
    "WidthMatch",
    "WorkedStep",
    "Workload",
]
