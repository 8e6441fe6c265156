"""The tests mirror gradflow/; each docstring is a fact about the world."""

# pytest may run this file a second time after jaxtyping has imported the checker; naming it here
# keeps `tests.shape_checker` reachable on the package in either order.
from tests import shape_checker as shape_checker
