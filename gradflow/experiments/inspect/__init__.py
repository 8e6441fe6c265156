"""Gradient flow of a user's own model, from what is on disk or in memory to findings.

What is looked at and run stands in `request`, `batch`, `twin_run` and `alone`; what is measured of
a layer in `layers` and `gradients`; what is said of it in the `findings` and `needs`; `inspection`
puts them together.
"""

from gradflow.experiments.inspect.inspection import inspect as inspect
from gradflow.experiments.inspect.request import run_inspect as run_inspect
