"""The arithmetic of parameters: what a recurrent network has, by formula, before it is built.

A layer of G gates with H hidden units that reads I inputs and R recurrent values (R is H, or the
projection's width) has, per direction,

    G H I  input weights,   G H R  recurrent weights,   b G H  biases,   R H  projection weights

with G = 1 (RNN), 3 (GRU), 4 (LSTM). b is 2 where every gate has two bias vectors (torch, cuDNN, and
Keras's GRU as it comes) and 1 where it has one (textbooks, Keras's LSTM and SimpleRNN). Without a
projection that is G (H I + H^2 + b H). The second vector adds nothing but numbers: only
the sum is seen, except in a GRU's candidate when the reset acts after the product.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradflow.errors import SettingError, UnknownNameError, nearest_name
from gradflow.records.params import Architecture, LayerCount, StepCost, Workload


@dataclass(frozen=True)
class CellArithmetic:
    """What one hidden unit of a cell takes, from the cell's equations.

    `kept_values` leaves out the h that the unit shows, which is counted at its own width.
    """

    gates: int
    elementwise_products: int
    nonlinearities: int
    kept_values: int
    state_parts: int


CELL_ARITHMETIC = {
    "rnn": CellArithmetic(
        gates=1, elementwise_products=0, nonlinearities=1, kept_values=0, state_parts=1
    ),
    # r * (U_n h + b), z * h, (1 - z) * n; kept: r, z, n and U_n h + b
    "gru": CellArithmetic(
        gates=3, elementwise_products=3, nonlinearities=3, kept_values=4, state_parts=1
    ),
    # f * c, i * g, o * tanh(c); kept: i, f, g, o, c and tanh(c)
    "lstm": CellArithmetic(
        gates=4, elementwise_products=3, nonlinearities=5, kept_values=6, state_parts=2
    ),
}


def require_architecture(architecture: Architecture) -> None:
    """Raise SettingError unless torch could build the network.

    Raises:
        SettingError: a width below 1, or a projection that does not fit.
    """
    for name in ("input_size", "hidden_size", "layers"):
        if getattr(architecture, name) < 1:
            raise SettingError(
                f"{name} must be at least 1, because a network without it computes nothing; "
                f"got {getattr(architecture, name)}."
            )
    for name in ("projection", "output_size"):
        if getattr(architecture, name) < 0:
            raise SettingError(
                f"{name} must be 0 (none) or more; got {getattr(architecture, name)}."
            )
    if architecture.projection and architecture.cell != "lstm":
        raise SettingError(
            f"projection is for an LSTM only, because torch gives no other cell a proj_size; "
            f"got {architecture.projection} for {architecture.cell!r}. Use 0."
        )
    if architecture.projection >= architecture.hidden_size:
        raise SettingError(
            f"projection must be smaller than hidden_size {architecture.hidden_size}, because it "
            f"narrows h; got {architecture.projection}."
        )


def require_workload(workload: Workload) -> None:
    """Raise SettingError unless batch, steps and value_bytes are at least 1."""
    for name in ("batch", "steps", "value_bytes"):
        if getattr(workload, name) < 1:
            raise SettingError(f"{name} must be at least 1; got {getattr(workload, name)}.")


def cell_arithmetic(cell: str) -> CellArithmetic:
    """Return a cell's numbers per hidden unit.

    Raises:
        UnknownNameError: the cell has no formula here.
    """
    if cell not in CELL_ARITHMETIC:
        raise UnknownNameError(
            f"there is no parameter formula for cell {cell!r}; only its built module can be "
            f"counted. {nearest_name(cell, CELL_ARITHMETIC)}"
        )
    return CELL_ARITHMETIC[cell]


def count_layers(architecture: Architecture) -> tuple[LayerCount, ...]:
    """Count every layer and direction, in torch's order (forward before reverse).

    >>> [layer.weights for layer in count_layers(Architecture("gru", 5, 4, layers=2))]
    [108, 96]
    """
    return tuple(
        _count_layer(architecture, layer, direction)
        for layer in range(architecture.layers)
        for direction in ("forward", "reverse")[: architecture.directions]
    )


def total_parameters(architecture: Architecture, *, biases: int) -> int:
    """Return the total by formula, head included, with so many bias vectors per gate.

    `biases` is ignored where the architecture has no bias.

    >>> [total_parameters(Architecture(cell, 5, 4), biases=1) for cell in ("rnn", "gru", "lstm")]
    [40, 120, 160]
    >>> total_parameters(Architecture("lstm", 10, 128), biases=2)
    71680
    """
    layers = count_layers(architecture)
    recurrent = sum(layer.weights + biases * layer.bias for layer in layers)
    return recurrent + head_weights(architecture) + head_bias(architecture)


def head_weights(architecture: Architecture) -> int:
    """Return the entries of the linear head's matrix."""
    return architecture.output_size * architecture.feature_size


def head_bias(architecture: Architecture) -> int:
    """Return the length of the linear head's bias; `bias=False` speaks of the cells alone."""
    return architecture.output_size


def step_cost(architecture: Architecture) -> StepCost:
    """Return work and memory for one sample and one step.

    What is kept is what the equations' derivatives need, as `gradflow.cells.numpy_cells` keeps it;
    a framework keeps about as much (cuDNN may recompute, an unfused cell keeps more).

    >>> step_cost(Architecture("lstm", 10, 128)).multiply_adds
    70656
    """
    unit = cell_arithmetic(architecture.cell)
    units = architecture.hidden_size * architecture.layers * architecture.directions
    shown = architecture.shown_size * architecture.layers * architecture.directions
    # A projecting LSTM also keeps the o * tanh(c) that the projection multiplied.
    unprojected = units if architecture.projection else 0
    return StepCost(
        multiply_adds=sum(layer.weights for layer in count_layers(architecture)),
        head_multiply_adds=head_weights(architecture),
        elementwise_products=units * unit.elementwise_products,
        nonlinearities=units * unit.nonlinearities,
        kept_values=architecture.input_size + units * unit.kept_values + shown + unprojected,
        state_values=shown + units * (unit.state_parts - 1),
    )


def _count_layer(architecture: Architecture, layer: int, direction: str) -> LayerCount:
    rows = cell_arithmetic(architecture.cell).gates * architecture.hidden_size
    input_size = architecture.input_size if layer == 0 else architecture.feature_size
    return LayerCount(
        layer=layer,
        direction=direction,
        input_size=input_size,
        input_weights=rows * input_size,
        recurrent_weights=rows * architecture.shown_size,
        projection_weights=architecture.projection * architecture.hidden_size,
        bias=rows if architecture.bias else 0,
    )
