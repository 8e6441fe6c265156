"""The instrument: cells in, numbers out."""

from gradflow.engine.jacobian_norms import JacobianNorms, jacobian_norms
from gradflow.engine.log_norms import log_norm

__all__ = ["JacobianNorms", "jacobian_norms", "log_norm"]
