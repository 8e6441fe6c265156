"""What can be asked of each question: one settings model per command."""

from gradflow.settings.base import Settings
from gradflow.settings.benchmark import BenchmarkSettings
from gradflow.settings.decay import DecaySettings
from gradflow.settings.depth import DepthSettings
from gradflow.settings.doctor import DoctorSettings
from gradflow.settings.explain import ExplainSettings
from gradflow.settings.inits import InitsSettings
from gradflow.settings.inspect import InspectSettings
from gradflow.settings.params import ParamsSettings
from gradflow.settings.parity import ParitySettings
from gradflow.settings.report import ReportSettings
from gradflow.settings.runs import RunsSettings
from gradflow.settings.saturate import SaturateSettings
from gradflow.settings.spectrum import SpectrumSettings
from gradflow.settings.speed import SpeedSettings
from gradflow.settings.step import StepSettings
from gradflow.settings.watch import WatchingSettings, WatchSettings

__all__ = [
    "BenchmarkSettings",
    "DecaySettings",
    "DepthSettings",
    "DoctorSettings",
    "ExplainSettings",
    "InitsSettings",
    "InspectSettings",
    "ParamsSettings",
    "ParitySettings",
    "ReportSettings",
    "RunsSettings",
    "SaturateSettings",
    "Settings",
    "SpectrumSettings",
    "SpeedSettings",
    "StepSettings",
    "WatchSettings",
    "WatchingSettings",
]
