"""Recurrent cells and their backpropagation through time in NumPy alone, for reading and checking.

Nothing here is differentiated by a library: every derivative is written out, one recurrence per
file, and derived in docs/backward.md. Use it to follow a textbook's chapter number by number, as
the slow twin of a fast cell, or to test a backward of your own.

>>> import numpy as np
>>> cell = NumpyLSTM.random(input_size=3, hidden_size=2, seed=1)
>>> trace = cell.forward(np.ones((5, 1, 3)))             # time, batch, input
>>> loss_slope = np.zeros((5, 1, 2)); loss_slope[-1] = 1  # L = sum of the last h
>>> gradients = cell.backward(trace, loss_slope)
>>> gradients.parameters["weight_hh"].shape, gradients.states["c"].shape
((8, 2), (5, 1, 2))
"""

from gradflow.cells.numpy_cells.cell import NumpyCell
from gradflow.cells.numpy_cells.gru import NumpyGRU
from gradflow.cells.numpy_cells.lstm import NumpyLSTM
from gradflow.cells.numpy_cells.rnn import NumpyRNN
from gradflow.cells.numpy_cells.sigmoid import sigmoid
from gradflow.cells.numpy_cells.values import Gradients, NumpyStep, StepGradients, Trace

__all__ = [
    "Gradients",
    "NumpyCell",
    "NumpyGRU",
    "NumpyLSTM",
    "NumpyRNN",
    "NumpyStep",
    "StepGradients",
    "Trace",
    "sigmoid",
]
