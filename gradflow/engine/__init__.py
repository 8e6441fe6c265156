"""The instrument: cells in, numbers out."""

from gradflow.engine.depth import DepthNorms, depth_norms
from gradflow.engine.jacobian_norms import JacobianNorms, jacobian_norms
from gradflow.engine.log_norms import log_norm
from gradflow.engine.lyapunov import LyapunovSpectrum, lyapunov_spectrum
from gradflow.engine.masks import align_by_lag, masked_accuracy, masked_loss, padding_share
from gradflow.engine.paths import PathNorms, path_norms

__all__ = [
    "DepthNorms",
    "JacobianNorms",
    "LyapunovSpectrum",
    "PathNorms",
    "align_by_lag",
    "depth_norms",
    "jacobian_norms",
    "log_norm",
    "lyapunov_spectrum",
    "masked_accuracy",
    "masked_loss",
    "padding_share",
    "path_norms",
]
