"""What can be asked of each question: one settings model per command."""

from gradflow.settings.base import Settings
from gradflow.settings.decay import DecaySettings
from gradflow.settings.doctor import DoctorSettings
from gradflow.settings.saturate import SaturateSettings

__all__ = ["DecaySettings", "DoctorSettings", "SaturateSettings", "Settings"]
