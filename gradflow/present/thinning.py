"""Fewer points for long curves: what is left out could not be seen, what stands out is kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def line_indices(values: FloatArray, most: int = 1200) -> IntArray:
    """Return at most about `most` indices that draw the same line as all of `values`.

    The curve is cut into pieces; each keeps its ends, its lowest and its highest value, and its
    first value that is not finite (so that a gap stays a gap).
    """
    count = len(values)
    if count <= most:
        return np.arange(count)
    kept: list[int] = [0, count - 1]
    for piece in np.array_split(np.arange(count), max(1, most // 5)):
        part = values[piece]
        finite = np.flatnonzero(np.isfinite(part))
        kept += [int(piece[0]), int(piece[-1])]
        if finite.size:
            kept += [int(piece[finite[part[finite].argmin()]])]
            kept += [int(piece[finite[part[finite].argmax()]])]
        if finite.size < part.size:
            kept.append(int(piece[np.flatnonzero(~np.isfinite(part))[0]]))
    return np.unique(np.array(kept, dtype=np.int64))


def marker_indices(steps: IntArray | FloatArray, most: int = 8, *, shift: float = 0.0) -> IntArray:
    """Return at most `most` indices, evenly spaced over the steps, for markers; the last is kept.

    `shift` (0 to 1, in spacings) moves them, so that curves that lie on each other all show.
    """
    count = len(steps)
    if count <= most:
        return np.arange(count)
    spacing = (float(steps[-1]) - float(steps[0])) / most
    wanted = float(steps[0]) + spacing * (np.arange(most) + shift)
    nearest = np.minimum(np.searchsorted(steps, wanted), count - 1)
    return np.unique(nearest)
