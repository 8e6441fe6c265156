"""Lyapunov exponents along a run: what each direction of the state shrinks or grows by per step."""

from gradflow.engine.lyapunov.spectrum import LyapunovSpectrum, lyapunov_spectrum

__all__ = ["LyapunovSpectrum", "lyapunov_spectrum"]
