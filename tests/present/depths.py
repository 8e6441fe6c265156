"""Depth maps made by hand for the tests of the table and the figures."""

from __future__ import annotations

import numpy as np

from gradflow.records import DepthMap, DepthResult, DepthRow

LENGTHS = (10, 8, 3)


def row(
    layer: int,
    *,
    direction: str = "forward",
    end: float = 0.0,
    slope: float = -0.5,
    lags: int = 10,
    zero_from: int | None = None,
) -> DepthRow:
    """Return a row that falls by `slope` decades a step, and is zero from some lag on."""
    logs = end + slope * np.arange(lags)
    zeros = np.zeros(lags, dtype=np.int64)
    if zero_from is not None:
        logs[zero_from:], zeros[zero_from:] = -np.inf, 3
    return DepthRow(
        layer=layer,
        direction="input" if layer == 0 else direction,
        log10_norm=logs,
        lowest=logs - 0.25,
        highest=logs + 0.25,
        zeros=zeros,
        exact_zeros=zeros,
        rate=None if zero_from is not None else slope * np.log(10.0),
    )


def depth_map(
    *,
    cell: str = "lstm",
    residual: bool = False,
    masks: str = "none",
    layers: int = 3,
    directions: int = 1,
    zero_from: int | None = None,
    slope: float = -0.5,
    lengths: tuple[int, ...] = LENGTHS,
) -> DepthMap:
    """Return a map whose lower layers begin lower, by a decade each (a third with links)."""
    loss = 0.3 if residual else 1.0
    lags = max(lengths)
    names = ("forward", "reverse")[:directions]
    rows = [row(0, end=-layers * loss, slope=slope, lags=lags, zero_from=zero_from)]
    rows += [
        row(
            layer,
            direction=name,
            end=-(layers - layer) * loss,
            slope=slope,
            lags=lags,
            zero_from=zero_from,
        )
        for layer in range(1, layers + 1)
        for name in names
    ]
    return DepthMap(
        cell=cell,
        residual=residual,
        masks=masks,
        layers=layers,
        directions=directions,
        read="state",
        block="joint",
        norm="spectral",
        lags=np.arange(lags),
        count=np.array([sum(length > lag for length in lengths) for lag in range(lags)]),
        rows=tuple(rows),
        method="closed form",
    )


def depth_result(*maps: DepthMap, lengths: tuple[int, ...] = LENGTHS) -> DepthResult:
    """Return a result of these maps."""
    return DepthResult(maps=maps, lengths=lengths, notes=("A note.",), config={"hidden": 32})


LINKS = depth_result(depth_map(), depth_map(residual=True))
MASKS = depth_result(
    depth_map(cell="gru", masks="step", zero_from=4),
    depth_map(cell="gru", masks="sequence", slope=-0.2),
    depth_map(cell="gru", masks="step", residual=True, zero_from=4),
    depth_map(cell="gru", masks="sequence", residual=True, slope=-0.2),
)
BOTH_WAYS = depth_result(depth_map(directions=2))
EQUAL = depth_result(depth_map(layers=1, lengths=(40,)), lengths=(40,))
DEEP = depth_result(depth_map(layers=9, slope=-31.0, lengths=(70, 70)), lengths=(70, 70))
ALL_ZERO = depth_result(depth_map(zero_from=0))
ONE_STEP = depth_result(depth_map(lengths=(1, 1)), lengths=(1, 1))
CASES = {
    "links": LINKS,
    "masks": MASKS,
    "both-ways": BOTH_WAYS,
    "equal": EQUAL,
    "deep": DEEP,
    "all-zero": ALL_ZERO,
    "one-step": ONE_STEP,
}
