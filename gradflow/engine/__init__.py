"""The instrument: cells in, numbers out."""

from gradflow.engine.jacobian_norms import JacobianNorms, jacobian_norms
from gradflow.engine.log_norms import log_norm
from gradflow.engine.lyapunov import LyapunovSpectrum, lyapunov_spectrum
from gradflow.engine.paths import PathNorms, path_norms

__all__ = [
    "JacobianNorms",
    "LyapunovSpectrum",
    "PathNorms",
    "jacobian_norms",
    "log_norm",
    "lyapunov_spectrum",
    "path_norms",
]
