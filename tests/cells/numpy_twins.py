"""NumPy cells with the weights of a torch subject, and the names that tests call them by."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gradflow.cells.numpy_cells import Gradients, NumpyCell, NumpyGRU, NumpyLSTM, NumpyRNN
from tests.cells.unrolled_autograd import Loss
from tests.reference.subject import Subject

MAKERS: dict[str, Callable[..., NumpyCell]] = {
    "lstm": NumpyLSTM.from_parameters,
    "gru": NumpyGRU.from_parameters,
    "gru-before": lambda parameters: NumpyGRU.from_parameters(parameters, reset="before"),
    "rnn": NumpyRNN.from_parameters,
    "rnn-relu": lambda parameters: NumpyRNN.from_parameters(parameters, nonlinearity="relu"),
}


def numpy_twin(kind: str, subject: Subject) -> NumpyCell:
    """Return the NumpyCell with the subject's weights."""
    return MAKERS[kind]({name: tensor.numpy() for name, tensor in subject.weights.items()})


def start_of(subject: Subject) -> tuple[NDArray[np.floating], ...]:
    """Return the subject's first state as arrays."""
    return tuple(part.numpy() for part in subject.state)


def pull_back(cell: NumpyCell, subject: Subject, loss: Loss) -> Gradients:
    """Run the subject's inputs through the cell and the loss back through it."""
    trace = cell.forward(subject.inputs.numpy(), start_of(subject))
    return cell.backward(trace, loss.own, final_gradient=loss.final)
