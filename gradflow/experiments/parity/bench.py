"""Both sides on the bench: the same inputs and state, each on its weights, run at will."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gradflow.cells.shapes import State
from gradflow.checkpoints.sides import Problem, Run, Side, Weights
from gradflow.experiments.parity.mapping import Link, Pair


@dataclass(frozen=True)
class Sided:
    """What one side computed: its run, and dL, that by the weights in common coordinates.

    `by_input`, `by_state` and `by_weight` are None where the side has no gradient.
    """

    run: Run
    by_input: Tensor | None = None
    by_state: dict[str, Tensor] | None = None
    by_weight: Weights | None = None
    unreached: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bench:
    """A pair with its numbers.

    `common_a` and `common_b` are the weights in common coordinates: one and the same where they are
    `shared`, two where each side keeps its own.
    """

    pair: Pair
    common_a: Weights
    common_b: Weights
    problem: Problem
    tolerance: float
    shared: bool = True

    def side_a(self, problem: Problem | None = None) -> Sided:
        """Run A, over the whole sequence unless another problem is given."""
        return _sided(self.pair.a, self.pair.link_a, self.common_a, problem or self.problem)

    def side_b(self, problem: Problem | None = None) -> Sided:
        """Run B likewise."""
        return _sided(self.pair.b, self.pair.link_b, self.common_b, problem or self.problem)

    def step_of(self, letter: str, common: Weights, x: Tensor, state: State) -> State:
        """Return the state after one step of side "a" or "b" on the given common weights."""
        side, link = self._of(letter)
        run = side.run(link.fill(common), x[None], state)
        return tuple(part[0] for part in run.states.values())

    def run_again(self, letter: str) -> Run:
        """Run side "a" or "b" over the whole sequence, without gradients."""
        return self.run_on(letter, self.problem.xs, self.problem.state)

    def run_on(self, letter: str, xs: Tensor, state: State) -> Run:
        """Run side "a" or "b" on another input, without gradients."""
        side, link = self._of(letter)
        weights = link.fill(self.common_a if letter == "a" else self.common_b)
        return side.run(weights, xs, state)

    def _of(self, letter: str) -> tuple[Side, Link]:
        pair = self.pair
        return (pair.a, pair.link_a) if letter == "a" else (pair.b, pair.link_b)


def _sided(side: Side, link: Link, common: Weights, problem: Problem) -> Sided:
    weights = link.fill(common)
    run = side.run(weights, problem.xs, problem.state)
    if side.why_no_gradient(problem) is not None:
        return Sided(run)
    found = side.gradients(weights, problem)
    return Sided(run, found.xs, found.state, link.pull(found.weights), found.unreached)
