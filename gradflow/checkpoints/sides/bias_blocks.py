"""Where the biases stand: beside the weights of their layer, else by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from gradflow.checkpoints.sides.blocks import STANDARD_ORDER, Block
from gradflow.checkpoints.sides.gate_words import gates_of_names, plain_word
from gradflow.checkpoints.sides.weight_shapes import is_head
from gradflow.errors import CellLoadError

Owners = Mapping[str, tuple[str, tuple[str, ...]]]
_OF_SOURCE = {"x": "bias_ih", "h": "bias_hh", "xh": "bias"}


@dataclass(frozen=True)
class _Run:
    """Some gates' biases, one after the other in a tensor, from a block on."""

    name: str
    reads: str
    gates: tuple[str, ...]
    start: int = 0


def bias_blocks(
    biases: Mapping[str, Tensor],
    owners: Owners,
    kind: str,
    hidden_size: int,
    order: Sequence[str] | None,
    guessed: list[str],
) -> list[Block]:
    """Return the blocks of all biases that belong to gates.

    Args:
        biases: the bias tensors by name.
        owners: matrix name to what it reads ("x", "h", "xh") and the gates that it holds.
        kind: "lstm", "gru" or "rnn".
        hidden_size: width of h.
        order: the gates in the order of a stacked bias; torch's where None.
        guessed: gets a sentence on what was taken for granted.

    Raises:
        CellLoadError: the names do not tell which bias is whose.
    """
    fitting = _fitting(biases, hidden_size)
    runs = [
        _Run(name, _OF_SOURCE[owner[0]], owner[1])
        for name, owner in ((name, _owner(name, owners)) for name in fitting)
        if owner is not None and len(owner[1]) == fitting[name]
    ]
    loose = {n: count for n, count in fitting.items() if n not in {run.name for run in runs}}
    usual = tuple(order or STANDARD_ORDER[kind])
    read = {run.reads for run in runs}
    if not runs:
        runs = _by_names(loose, kind, usual, guessed)
    elif len(read) == 1 and sum(loose.values()) == len(usual):
        # the layers' own are of one source, so one more set is of the other
        other = "bias_hh" if read == {"bias_ih"} else "bias_ih"
        runs += [replace(run, reads=other) for run in _by_names(loose, kind, usual, guessed)]
    if len({run.reads for run in runs}) == 1:  # one bias per gate stands for torch's sum of two
        runs = [replace(run, reads="bias") for run in runs]
    return [
        Block(gate, run.reads, run.name, _place(biases[run.name], run.start + index, hidden_size))
        for run in runs
        for index, gate in enumerate(run.gates)
    ]


def _fitting(biases: Mapping[str, Tensor], hidden_size: int) -> dict[str, int]:
    """Return how many gates each bias serves, for those that can be a cell's."""
    counts = {
        name: divmod(bias.numel(), hidden_size)
        for name, bias in biases.items()
        if not _is_of_norm(name, biases) and not is_head(name)
    }
    return {name: count for name, (count, rest) in counts.items() if rest == 0}


def _is_of_norm(name: str, biases: Mapping[str, Tensor]) -> bool:
    """Return whether this belongs to a layer norm: its weight has one axis too."""
    place, dot, _ = name.rpartition(".")
    return bool(dot) and f"{place}.weight" in biases


def _owner(bias: str, owners: Owners) -> tuple[str, tuple[str, ...]] | None:
    """Return the matrix of the same layer: "x2h.weight" for "x2h.bias"."""
    place, dot, _ = bias.rpartition(".")
    same = [name for name in owners if dot and name.rpartition(".")[0] == place]
    return owners[same[0]] if len(same) == 1 else None


def _by_names(
    loose: Mapping[str, int], kind: str, order: tuple[str, ...], guessed: list[str]
) -> list[_Run]:
    """Place biases that stand by themselves."""
    gates, names, total = len(order), list(loose), sum(loose.values())
    if total == 0:
        return []
    stacked = all(count == gates for count in loose.values())
    if stacked and len(names) == 1:
        return [_Run(names[0], "bias", order)]
    if stacked and len(names) == 2:
        first, second = sorted(names, key=_is_recurrent)
        return [_Run(first, "bias_ih", order), _Run(second, "bias_hh", order)]
    if total == 2 * gates and len(names) == 1:  # both in one vector, x's first
        return [_Run(names[0], "bias_ih", order), _Run(names[0], "bias_hh", order, gates)]
    found = _one_each(names, kind)
    if found is None and len(names) == gates and len(order) > 1:
        guessed.append(f"no name tells the gates of {', '.join(names)}; taken in order")
        return [_Run(name, "bias", (gate,)) for name, gate in zip(names, order, strict=True)]
    if found is None:
        raise CellLoadError(
            f"the names of the biases {', '.join(names)} do not tell whose they are; an "
            f"{kind.upper()} has one or two per gate. Tell by a weight map (--weight-map)."
        )
    return found


def _one_each(names: Sequence[str], kind: str) -> list[_Run] | None:
    """Place biases of one gate each: one set, two sets, or one and the candidate's second."""
    gates = len(STANDARD_ORDER[kind])
    if len(names) == gates and (found := gates_of_names(names, kind)):
        return [_Run(name, "bias", (gate,)) for name, gate in found.items()]
    on_h = [name for name in names if _is_recurrent(name)]
    on_x = [name for name in names if name not in on_h]
    if len(on_h) == len(on_x) == gates:
        sets = {"bias_ih": gates_of_names(on_x, kind), "bias_hh": gates_of_names(on_h, kind)}
        if all(sets.values()):
            return [
                _Run(name, reads, (gate,))
                for reads, found in sets.items()
                for name, gate in (found or {}).items()
            ]
    if len(names) == gates + 1:
        for extra, rest in _leaving_one_out(names):
            found = gates_of_names(rest, kind)
            if found and _is_recurrent(extra):
                one_set = [
                    _Run(name, "bias_ih" if gate == "candidate" else "bias", (gate,))
                    for name, gate in found.items()
                ]
                return [*one_set, _Run(extra, "bias_hh", ("candidate",))]
    return None


def _leaving_one_out(names: Sequence[str]) -> list[tuple[str, list[str]]]:
    return [(name, [other for other in names if other != name]) for name in names]


def _is_recurrent(name: str) -> bool:
    """Return whether a bias is called after the old state: b_hh, bias_hh, b_hn, bh, b_u."""
    plain = plain_word(name)
    for lead in ("bias", "b"):
        if plain.startswith(lead):
            plain = plain.removeprefix(lead)
            break
    return plain.startswith(("h", "u", "rec")) or "hh" in plain or "hid" in plain


def _place(bias: Tensor, index: int, hidden: int) -> tuple[slice, ...]:
    rows = slice(index * hidden, (index + 1) * hidden)
    rows = slice(None) if bias.numel() == hidden else rows
    if bias.dim() == 1:
        return (rows,)
    return (rows, slice(None)) if bias.shape[1] == 1 else (slice(None), rows)


__all__ = ["bias_blocks"]
