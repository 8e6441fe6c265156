"""Whether a layer that was run step by step is the fused layer, and what may part them.

Both are given the same weights and inputs. In float64 they agree to 1e-6 or better. In float32 the
fused layer is held to 1e-6 of the float64 twin, in half precisions to a few of their eps. Beyond,
the twin is asked what the same steps cost in the same dtype: rounding that the network makes larger
parts it from itself as far. Only what exceeds that is a fault.
"""

from __future__ import annotations

import math

from gradflow.experiments.inspect.gradients import RanModule
from gradflow.experiments.inspect.layers import Measured
from gradflow.experiments.inspect.weight_findings import make_finding
from gradflow.records.inspect import Finding, Severity

TOLERANCE = 1e-6  # of float64 and float32
_EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
_FEW = 4  # eps of a half precision
_AS_FAR = 10.0  # times: two orders of summation round apart, not alike


def twin_findings(layer: Measured, ran: RanModule) -> list[Finding]:
    """Return how the unrolled layer was met by the fused one, where they part.

    Args:
        layer: the last one of a module, at which the module's name is told.
        ran: the module's run.
    """
    return [*_wide(layer, ran.watched.fused_gap), *_own(layer, ran)]


def _wide(layer: Measured, gap: float | None) -> list[Finding]:
    if gap is None or gap <= TOLERANCE:
        return []
    chaotic = (layer.record.lyapunov or 0.0) > 0.0
    severity: Severity = "info" if chaotic else "error"
    why = "the network is chaotic, and parts whatever one does" if chaotic else "it should not"
    text = f"The unrolled layer parts from the fused one by {gap:.1e} in float64; {why}."
    return [make_finding("GF305", severity, text, place=layer.found, value=gap)]


def _own(layer: Measured, ran: RanModule) -> list[Finding]:
    gap, rounding, dtype = ran.own_gap, ran.rounding or 0.0, layer.found.dtype
    limit = max(TOLERANCE, _FEW * _EPS.get(dtype, 0.0))
    if gap is None or not gap > limit or not math.isfinite(gap):  # NaN is another's matter
        return []
    rounded = gap <= _AS_FAR * max(rounding, limit)
    severity: Severity = "info" if rounded else "error"
    why = (
        "rounding alone parts the same steps so far, because the network makes it larger"
        if rounded
        else f"rounding alone would part them by {rounding:.1e}"
    )
    text = (
        f"The fused layer in {dtype} parts from its float64 twin by {gap:.1e} ({why}); what "
        "follows holds for the float64 trajectory."
    )
    return [make_finding("GF305", severity, text, place=layer.found, value=gap)]
