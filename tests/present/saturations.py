"""Saturations made by hand: what the figure and the table of `saturate` are tested on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradflow.records import FirstNonfinite, SaturateResult, SaturateRow

CONFIG = {"steps": 4, "hidden": 8, "input_size": 8, "batch": 3}
NAN = FirstNonfinite(
    during="backward",
    tensor="gradient of the pre-activation",
    gate="input",
    unit=0,
    step=4,
    operation="exp",
    parameter="lin.bias",
    row=0,
    value="nan",
    true_log10=-44.3,
    fits=True,
)


def trial(
    cell: str = "lstm",
    *,
    by: str = "gradflow",
    dtype: str = "float32",
    magnitude: str | None = "1e2",
    share: float | None = 0.5,
) -> SaturateRow:
    """Return a trial in which all is finite."""
    return SaturateRow(
        cell=cell,
        implementation=by,
        dtype=dtype,
        magnitude=magnitude,
        value=100.0,
        sign="+",
        place="forget gate",
        gate="forget",
        path="bias",
        verdict="ok",
        outputs_finite=True,
        state_gradients_finite=True,
        parameter_gradients_finite=True,
        gates_in_range=None if share is None else True,
        zero_slope_fraction=share,
    )


def faulty(row: SaturateRow, first: FirstNonfinite = NAN) -> SaturateRow:
    """Return the trial as a fault of the cell."""
    return replace(
        row, verdict="fault", first_nonfinite=first, reason="it is nan; its true value fits"
    )


def overflowing(row: SaturateRow) -> SaturateRow:
    """Return the trial as an honest overflow."""
    first = replace(NAN, tensor="gradient of c", value="inf", true_log10=50.0, fits=False)
    return replace(
        row, verdict="overflow", first_nonfinite=first, reason="its true value does not fit"
    )


def missing(row: SaturateRow, reason: str = "float16 cannot hold 1e8") -> SaturateRow:
    """Return the trial as one that the dtype has no number for."""
    return replace(
        row,
        verdict="not applicable",
        value=None,
        outputs_finite=None,
        state_gradients_finite=None,
        parameter_gradients_finite=None,
        gates_in_range=None,
        zero_slope_fraction=None,
        reason=reason,
    )


def saturation_of(*rows: SaturateRow, notes: Sequence[str] = ()) -> SaturateResult:
    """Return a result of these trials."""
    return SaturateResult(rows=rows, notes=tuple(notes), config=dict(CONFIG))


def mixed() -> SaturateResult:
    """Return a result with a tile of every kind, two cells and two dtypes."""
    user = "some/where/cell.py:make_cell"
    rows = []
    for dtype in ("float16", "float64"):
        for magnitude in ("1e2", "1e8", "max"):
            ours = trial(dtype=dtype, magnitude=magnitude, share=1.0)
            theirs = trial(user, by="user", dtype=dtype, magnitude=magnitude, share=None)
            gone = dtype == "float16" and magnitude == "1e8"
            rows += [missing(ours) if gone else ours]
            rows += [missing(theirs) if gone else theirs]
            if magnitude == "max":
                rows += [faulty(theirs), overflowing(ours)]
        rows.append(trial(user, by="user", dtype=dtype, magnitude=None, share=None))
    return saturation_of(*rows, notes=["A note of the run."])
