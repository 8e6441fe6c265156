"""Small fixtures: weights, inputs and the numbers that are right of them."""
