"""What came of the passes of an update: profiles by module, cell and run, added up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch

from gradflow.records.watch import FlowLayer
from gradflow.watching.call_flow import CallFlow, flow_as_trained
from gradflow.watching.capture.call import Call
from gradflow.watching.capture.chains import Chain, Chains, Entry
from gradflow.watching.capture.modules import WatchedModule
from gradflow.watching.flow_layers import flow_layer
from gradflow.watching.flow_sums import FlowSum
from gradflow.watching.places import cell_places, entering_of, part_names
from gradflow.watching.replay_calls import replay_calls
from gradflow.watching.twin.weights import Tensors, forget_bias, weights_by_cell

MOST_CALLS = 8  # of one module in a pass that are told apart


@dataclass(frozen=True)
class _Shape:
    """What a module's calls look like: their states' names and widths, and their precision."""

    parts: tuple[str, ...]
    widths: tuple[int, ...]
    dtype: str


class Measured:
    """The profiles of an update.

    Args:
        watched: the model's recurrent modules.
    """

    def __init__(self, watched: Sequence[WatchedModule]) -> None:
        self._watched = watched
        self._sums: dict[tuple[int, int], list[FlowSum]] = {}
        self._biases: dict[tuple[int, int], float | None] = {}
        self._broken: dict[int, str | None] = {}
        self._shapes: dict[int, _Shape] = {}
        self._silent: dict[int, int] = {}

    @property
    def any_gradient(self) -> bool:
        """Whether a gradient came to any module."""
        return any(self._sums.values())

    def note_call(self, index: int, call: Call) -> None:
        """Learn from a call what its module's states look like."""
        self._shapes[index] = _Shape(
            part_names(self._watched[index], call),
            tuple(part.shape[-1] for part in call.final),
            str(call.precision).removeprefix("torch."),
        )

    def add_pass(self, chains: Mapping[int, Chains], weights: Mapping[int, Tensors]) -> None:
        """Measure a pass to which gradients have come, and let go of its calls.

        Args:
            chains: the runs of each module.
            weights: snapshots of those that have a twin.
        """
        with torch.no_grad(), _without_autocast(self._watched):
            for index, runs in chains.items():
                alive = [chain for chain in runs.found if chain.has_gradient]
                if alive:
                    self._measure(index, alive, weights.get(index))
                else:
                    longest = max(sum(e.steps for e in chain.entries) for chain in runs.found)
                    self._silent[index] = max(longest, self._silent.get(index, 0))

    def layers(self, log10_scale: float, judged: frozenset[int]) -> Iterator[FlowLayer]:
        """Yield the record of each module, cell and run.

        Args:
            log10_scale: of the loss scale, which is taken out.
            judged: the modules that are told, too, where they were called and got no gradient.
        """
        for index, shape in sorted(self._shapes.items()):
            is_told = index in self._silent and index in judged
            if not self._sums.get((index, 0)) and not is_told:
                continue
            places = cell_places(self._watched[index], **vars(shape))
            for cell, place in enumerate(places):
                silent = [FlowSum(steps=self._silent.get(index, 0))]
                sums = self._sums.get((index, cell)) or silent
                for call, found in enumerate(sums):
                    yield flow_layer(
                        place,
                        found,
                        log10_scale=log10_scale,
                        call=call,
                        calls=len(sums),
                        forget_bias=self._biases.get((index, cell)),
                        broken_weight=self._broken.get(index),
                    )

    def _measure(self, index: int, alive: Sequence[Chain], tensors: Tensors | None) -> None:
        watched = self._watched[index]
        calls = {
            entry: entry.kept
            for chain in alive
            for entry in chain.entries
            if entry.kept is not None
        }
        if tensors is None:
            parts = self._shapes[index].parts
            flows = {entry: [flow_as_trained(call, parts)] for entry, call in calls.items()}
        else:
            found = replay_calls(watched, list(calls.values()), tensors)
            flows = dict(zip(calls, found, strict=True))
            self._note_weights(index, watched, tensors)
        apart = len(alive) <= MOST_CALLS
        for number, chain in enumerate(alive):
            self._add(index, number if apart else 0, chain, flows)
        for cell in range(len(next(iter(flows.values())))):
            first = self._sums[index, cell][0]
            first.together = max(first.together, 1 if apart else len(alive))

    def _note_weights(self, index: int, watched: WatchedModule, tensors: Tensors) -> None:
        broken = [name for name, each in tensors.items() if not bool(torch.isfinite(each).all())]
        self._broken[index] = broken[0] if broken else None
        own = watched.torchs_own
        if own is not None:
            for cell, weights in enumerate(weights_by_cell(own, tensors)):
                self._biases[index, cell] = forget_bias(watched.kind, weights)

    def _add(
        self, index: int, number: int, chain: Chain, flows: Mapping[Entry, Sequence[CallFlow]]
    ) -> None:
        watched = self._watched[index]
        eps = torch.finfo(getattr(torch, self._shapes[index].dtype)).eps
        for cell in range(len(next(iter(flows.values())))):
            sums = self._sums.setdefault((index, cell), [])
            while len(sums) <= number:
                sums.append(FlowSum())
            sums[number].add_chain(
                chain,
                flows,
                cell,
                reverse=cell % watched.directions == 1,
                entering=entering_of(cell, watched.directions, eps),
            )


@contextmanager
def _without_autocast(watched: Sequence[WatchedModule]) -> Iterator[None]:
    """Compute in the twin's own precision, whatever the user's loop is within."""
    kinds = {p.device.type for each in watched for p in each.module.parameters()}
    with ExitStack() as stack:
        for kind in kinds & {"cpu", "cuda", "xpu"}:
            stack.enter_context(torch.autocast(kind, enabled=False))
        yield
