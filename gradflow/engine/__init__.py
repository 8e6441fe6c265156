"""The instrument: cells in, numbers out."""

from gradflow.engine.depth import DepthNorms, depth_norms
from gradflow.engine.jacobian_norms import JacobianNorms, jacobian_norms
from gradflow.engine.last_output import LastOutput, last_output
from gradflow.engine.log_norms import log_norm
from gradflow.engine.lyapunov import LyapunovSpectrum, lyapunov_spectrum
from gradflow.engine.masks import align_by_lag, masked_accuracy, masked_loss, padding_share
from gradflow.engine.paths import PathNorms, path_norms
from gradflow.engine.sample_gradients import SampleInfluence, gradient_by_step, sample_influence

__all__ = [
    "DepthNorms",
    "JacobianNorms",
    "LastOutput",
    "LyapunovSpectrum",
    "PathNorms",
    "SampleInfluence",
    "align_by_lag",
    "depth_norms",
    "gradient_by_step",
    "jacobian_norms",
    "last_output",
    "log_norm",
    "lyapunov_spectrum",
    "masked_accuracy",
    "masked_loss",
    "padding_share",
    "path_norms",
    "sample_influence",
]
