"""One step, or several, worked by hand: gate values and a state in, every equation out.

    LSTM   c_t = f_t * c_{t-1} + i_t * g_t,  h_t = o_t * tanh(c_t)
    GRU    h_t = z_t * h_{t-1} + (1 - z_t) * n_t              (z keeps, as in torch)

Gates and candidate are given, not computed, so this is one unit's bookkeeping; with them held the
derivative by the old state is the product of the keep gates, and the record says what that leaves
out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from gradflow.config import StepSettings
from gradflow.errors import GateValueError, SettingError, UnknownNameError, nearest_name
from gradflow.experiments.worked_steps import gru_step, lstm_step
from gradflow.provenance import Stopwatch, provenance
from gradflow.records.base import Check
from gradflow.records.step import Equation, StepResult, WorkedStep

Values = float | Iterable[float]
Progress = Callable[[str, int, int], None]
CONVENTIONS = ("keep", "write")

# A step maps its state by one product and one sum of numbers of order 1; this many roundings of
# 1e-16 per step are far more than it takes.
ROUNDING_PER_STEP = 1e-13

LSTM_LEFT_OUT = (
    "The direct derivative holds every gate and the candidate fixed. In a trained cell they read "
    "h_{t-1}, which shows c_{t-1}: each left-out term, times its recurrent weight U, times "
    "dh_{t-1}/dc_{t-1} = o_{t-1} (1 - tanh(c_{t-1})^2), adds to the derivative of step t (from the "
    "second step on, because h_0 is given)."
)
GRU_LEFT_OUT = (
    "The direct derivative holds gate and candidate fixed. In a trained cell they read h_{t-1}: "
    "each left-out term, times its recurrent weight, adds to the derivative (for the candidate "
    "times r_t U_n, and once more through the reset gate)."
)
Z_KEEPS = "z keeps (torch, Keras, Cho et al. 2014)"
Z_WRITES = "1 - z keeps (Chung et al. 2014)"


def run_step(
    settings: StepSettings,
    *,
    progress: Progress | None = None,  # noqa: ARG001 - every question is asked in the same form
) -> StepResult:
    """Work the steps that the settings ask for; see `work_lstm` and `work_gru`."""
    watch = Stopwatch()
    if settings.cell == "lstm":
        written = settings.input_gate
        result = work_lstm(
            settings.c or 0.0,
            settings.forget_gate or (),
            input_gate=None if written == "coupled" else written,
            candidate=settings.candidate,
            output_gate=settings.output_gate or (),
        )
    else:
        result = work_gru(
            settings.h or 0.0,
            settings.update_gate or (),
            candidate=settings.candidate,
            convention=settings.convention or "keep",
        )
    return replace(
        result, config=settings.to_json(), environment=provenance("step", settings, watch)
    )


def work_lstm(
    c: float = 1.0,
    forget_gate: Values = 0.9,
    *,
    input_gate: Values | None = None,
    candidate: Values = 0.0,
    output_gate: Values = 0.5,
) -> StepResult:
    """Work LSTM steps of one unit.

    Args:
        c: the cell state before the first step.
        forget_gate, output_gate: values in [0, 1], one for all steps or one per step.
        input_gate: likewise; 1 - forget_gate when not given.
        candidate: values in [-1, 1].

    Returns:
        StepResult; its check moves c by 1 and compares with the direct coefficient.

    Raises:
        GateValueError: a value that a sigmoid or tanh cannot have.
        SettingError: lists of different lengths, or a state that is not finite.

    >>> result = work_lstm(2, 0.8, input_gate=0.25, candidate=-0.4, output_gate=0.5)
    >>> [round(value, 5) for value in result.steps[0].after.values()]
    [0.45257, 1.5]
    """
    given = {"forget_gate": forget_gate, "candidate": candidate, "output_gate": output_gate}
    if input_gate is not None:
        given["input_gate"] = input_gate
    columns = _columns(given)
    if input_gate is None:
        columns["input_gate"] = [1 - value for value in columns["forget_gate"]]
    rows = [
        {key: column[index] for key, column in columns.items()}
        for index in range(len(columns["forget_gate"]))
    ]

    def run(start: float) -> list[WorkedStep]:
        steps: list[WorkedStep] = []
        for number, row in enumerate(rows, start=1):
            before = steps[-1].after["c"] if steps else start
            steps.append(lstm_step(number, before, row))
        return steps

    return _collect("lstm", run, _finite("c", c), explanations=(LSTM_LEFT_OUT,))


def work_gru(
    h: float = 1.0,
    update_gate: Values = 0.9,
    *,
    candidate: Values = 0.0,
    convention: str = "keep",
) -> StepResult:
    """Work GRU steps of one unit.

    Args:
        h: the state before the first step.
        update_gate: z, values in [0, 1], one for all steps or one per step.
        candidate: values in [-1, 1].
        convention: "keep" where z keeps the old state, "write" where z writes and 1 - z keeps.

    Returns:
        StepResult; its check moves h by 1 and compares with the direct coefficient.

    Raises:
        GateValueError: a value that a sigmoid or tanh cannot have.
        SettingError: lists of different lengths, or a state that is not finite.
        UnknownNameError: another convention.

    >>> round(work_gru(2, 0.75, candidate=-0.4).steps[0].after["h"], 12)
    1.4
    """
    if convention not in CONVENTIONS:
        raise UnknownNameError(
            f"convention must say whether z keeps or writes; got {convention!r}. "
            f"{nearest_name(convention, CONVENTIONS)}"
        )
    columns = _columns({"update_gate": update_gate, "candidate": candidate})
    pairs = list(zip(columns["update_gate"], columns["candidate"], strict=True))

    def run(start: float) -> list[WorkedStep]:
        steps: list[WorkedStep] = []
        for number, (z, n) in enumerate(pairs, start=1):
            before = steps[-1].after["h"] if steps else start
            steps.append(gru_step(number, before, z=z, n=n, z_keeps=convention == "keep"))
        return steps

    explanations = (GRU_LEFT_OUT, _other_convention(convention, columns["update_gate"]))
    return _collect("gru", run, _finite("h", h), explanations=explanations, convention=convention)


def _collect(
    cell: str,
    run: Callable[[float], list[WorkedStep]],
    start: float,
    *,
    explanations: tuple[str, ...],
    convention: str | None = None,
) -> StepResult:
    part = "c" if cell == "lstm" else "h"
    steps = run(start)
    keeps = {"lstm": "f_{}", "gru": "z_{}"}[cell] if convention != "write" else "(1 - z_{})"
    direct = Equation(
        name=f"d{part}_{len(steps)}/d{part}_0, gates held",
        symbols=" * ".join(keeps.format(step.step) for step in steps),
        numbers=" * ".join(f"{step.direct:.6g}" for step in steps),
        value=math.prod(step.direct for step in steps),
    )
    # With gates and candidate given, the state moves along a straight line: any two starts do.
    moved = run(1.0)[-1].after[part] - run(0.0)[-1].after[part]
    check = Check(
        name=f"moving {part}_0 by 1 moves {part}_{len(steps)} by the direct coefficient",
        passed=abs(moved - direct.value) <= ROUNDING_PER_STEP * len(steps),
        detail=f"moved by {moved:.12g}, coefficient {direct.value:.12g}",
    )
    return StepResult(cell, tuple(steps), direct, convention, explanations, checks=(check,))


def _other_convention(convention: str, update_gate: list[float]) -> str:
    here, there = (Z_KEEPS, Z_WRITES) if convention == "keep" else (Z_WRITES, Z_KEEPS)
    swapped = ", ".join(f"{1 - z:.6g}" for z in update_gate)
    return (
        f"Here {here}. Where {there}, z' = 1 - z = {swapped} gives the same step. A trained cell "
        "is carried over by negating the update gate's rows of weights and biases, because "
        "1 - sigmoid(a) = sigmoid(-a)."
    )


def _columns(given: dict[str, Values]) -> dict[str, list[float]]:
    """Return every value once per step; a single value serves all steps."""
    lists = {key: _list(key, values) for key, values in given.items()}
    longest = max(lists, key=lambda key: len(lists[key]))
    count = len(lists[longest])
    for key, values in lists.items():
        if len(values) not in (1, count):
            raise SettingError(
                f"{key} must have one value, or one per step like {longest}, which has {count}; "
                f"got {len(values)}."
            )
    return {key: values * (count if len(values) == 1 else 1) for key, values in lists.items()}


def _list(key: str, values: Values) -> list[float]:
    found = [float(v) for v in values] if isinstance(values, Iterable) else [float(values)]
    lowest, squash = (-1, "tanh") if key == "candidate" else (0, "sigmoid")
    if not found:
        raise SettingError(f"{key} must have at least one value, because each makes a step.")
    for value in found:
        if not lowest <= value <= 1:
            raise GateValueError(
                f"{key} must lie between {lowest} and 1, because a {squash} is never beyond; "
                f"got {value:g}."
            )
    return found


def _finite(part: str, value: float) -> float:
    if not math.isfinite(value):
        raise SettingError(f"{part} must be a finite number; got {value}.")
    return float(value)
