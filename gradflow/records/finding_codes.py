"""Every finding that `gradflow inspect` can make: its code, what it means and what to try."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from gradflow.errors import UnknownNameError, nearest_name


@dataclass(frozen=True)
class FindingKind:
    """One kind of finding: what it is called, what it means, when it is made, what to try."""

    code: str
    title: str
    meaning: str
    threshold: str
    advice: str

    def to_json(self) -> dict[str, str]:
        """Return the fields as plain JSON."""
        return asdict(self)

    def explain(self) -> str:
        """Return all of it as text, for `gradflow explain`."""
        return (
            f"{self.code}: {self.title}\n\n{self.meaning}\n\n"
            f"When: {self.threshold}\n\nWhat to try: {self.advice}"
        )


_KINDS = (
    FindingKind(
        "GF100",
        "memory horizon",
        "The lag at which the gradient has fallen to a thousandth of what it is at lag 0. It is a "
        "property of the model on this input and no fault: torch's own default LSTM forgets within "
        "about 18 steps before it is trained.",
        "always, as information, for each layer and direction.",
        "Nothing, unless your task needs more: then say so with --needs-lag N.",
    ),
    FindingKind(
        "GF101",
        "vanishing through time",
        "The task needs an older step than the gradient reaches, so what stood there cannot be "
        "learned. It is judged against a need only, never by itself.",
        "an error where --needs-lag N is given and every layer of a module has a horizon below N; "
        "where a loss reads the last step alone and its gradient at the first step of the data is "
        "below 1e-6 of the largest one, a warning if the data have ten times as many steps as the "
        "horizon, else information.",
        "Set the forget gate's effective bias to 1 to 2, or to ln(N) (chrono); with a GRU the "
        "update gate's. Orthogonal recurrent weights, a shortcut (attention, skip connection, "
        "pooling over time), or shorter sequences help too.",
    ),
    FindingKind(
        "GF102",
        "exploding through time",
        "A small change of an early state is a thousand times larger, or more, when it arrives. "
        "Training then jumps, or ends in inf and NaN.",
        "a warning where the norm by lag exceeds 1e3 anywhere, an error above 1e8.",
        "Clip gradients by norm, lower the learning rate, or scale the recurrent weights so that "
        "their spectral radius is at most 1.",
    ),
    FindingKind(
        "GF103",
        "graph cut",
        "The gradient is exactly zero before a certain step, although the state itself carries "
        "over: the graph was cut there by detach(), no_grad(), .data or truncated "
        "backpropagation. No number underflowed.",
        "an exact zero next to a step with a gradient, where the step's own Jacobian is not zero.",
        "Remove the detach, or lengthen the truncation window to what the task needs. If the "
        "truncation is meant, ignore this code.",
    ),
    FindingKind(
        "GF104",
        "underflow in the model's own precision",
        "The true gradient is there, but it is zero in the number format that the model trains in. "
        "It is no cut, and a norm taken in that format reads 0 even earlier.",
        "a state's gradient is 0 in the model's own dtype and not in float64.",
        "Train in float32 or bfloat16 rather than float16, scale the loss (GradScaler), and take "
        "norms in float64.",
    ),
    FindingKind(
        "GF105",
        "structural zero: the reversed half of the last output",
        "The reversed state at the last position has read one step only, so its gradient to every "
        "earlier step is zero by construction. Nothing is broken in the layer; the head reads the "
        "wrong place.",
        "a reversed cell has a gradient at the last position alone.",
        "Read the reversed half from h_n (row 2*layer + 1), or from output[0], not output[-1].",
    ),
    FindingKind(
        "GF106",
        "padding carries gradient",
        "The model runs over the padded steps as if they were data: short samples end in a state "
        "that has read mostly padding, and most of their gradient goes there.",
        "a warning where more than 1 % of a padded sample's input gradient lies in its padding.",
        "Pack the batch (pack_padded_sequence with the lengths), or read each sample's state at "
        "its own last step and mask the loss.",
    ),
    FindingKind(
        "GF107",
        "time and batch axes mixed up",
        "The output of one sample depends on the input of another, which must not be: the "
        "recurrence runs along the batch axis, or .view() was used where .transpose() was meant.",
        "an error where the gradient of one sample's output with respect to another sample's "
        "input is not zero (in evaluation mode, so that batch norm is no reason).",
        "Give nn.RNN/LSTM/GRU batch_first=True for (batch, time, features) data, or transpose.",
    ),
    FindingKind(
        "GF108",
        "a layer that the loss does not depend on",
        "The graph leads from the loss to no state of this layer: it is not trained by this loss.",
        "no gradient at any step.",
        "Look for detach(), no_grad() or a part of the output that is not used.",
    ),
    FindingKind(
        "GF109",
        "data too short for the lag that is needed",
        "The gradient had not fallen to a thousandth at the end of the data, and the lag that is "
        "needed lies beyond: it may reach that far or not.",
        "a warning where --needs-lag N is given, the data have fewer than N steps, and no horizon "
        "is seen in them.",
        "Give longer data, or data of the length that the task has.",
    ),
    FindingKind(
        "GF201",
        "forget bias applied twice",
        "torch adds two bias vectors, b_ih + b_hh. Setting every tensor named bias to 1 makes the "
        "effective forget bias 2, and the gate 0.88 where 0.73 was meant.",
        "both vectors have the same non-zero constant in all forget rows.",
        "Set one of them to the value and the other to 0.",
    ),
    FindingKind(
        "GF202",
        "forget bias on some layers or directions only",
        "Some layers or directions of a module have a raised forget bias and others have none, "
        "as happens when a loop over names misses '_reverse' or '_l1'.",
        "the mean effective forget bias is at least 0.75 in one place and at most 0.25 in another, "
        "and nearly constant over the units in both.",
        "Set it in all of them: gradflow.inits does so for torch's layers.",
    ),
    FindingKind(
        "GF203",
        "chrono biases not opposite",
        "A chrono initialization (Tallec and Ollivier 2018) draws b_f = ln(U(1, T-1)) and sets "
        "b_i = -b_f, so that what is kept and what is written balance. Here the forget biases look "
        "like such draws and the input biases are not their opposite.",
        "forget biases all positive, with e^b spread evenly from 1 on, and b_i + b_f not near 0.",
        "Set the input gate's effective bias to minus the forget gate's.",
    ),
    FindingKind(
        "GF204",
        "gates saturated",
        "Most values of a gate lie within 0.01 of 0 or 1, where its derivative is nearly zero: it "
        "hardly learns, and inputs hardly move it.",
        "a warning where at least 90 % of a gate's values are saturated.",
        "Scale the inputs to about unit variance, lower the gate's bias, or the learning rate.",
    ),
    FindingKind(
        "GF205",
        "orthogonal on the stacked matrix",
        "orthogonal_ was used on all gates' recurrent weights at once. The stacked matrix has "
        "orthonormal columns; each gate's own block has squared singular values of 1/4 on average "
        "(1/3 in a GRU), and is not orthogonal.",
        "W^T W is the unit matrix to 1e-3 and the blocks are not orthogonal.",
        "Use orthogonal_ on each gate's block: for w in weight_hh.chunk(4): orthogonal_(w).",
    ),
    FindingKind(
        "GF206",
        "gate order looks foreign",
        "The biases look as if the rows stood in another order than torch's (i, f, g, o; r, z, n), "
        "as after a conversion from ONNX or TensorFlow. Row counts cannot tell; this is a "
        "suspicion and no proof.",
        "torch's order is less likely, given the biases, than all others together.",
        "Compare outputs with the source: gradflow parity has the proof.",
    ),
    FindingKind(
        "GF207",
        "dead units",
        "Units whose output is the same number at every step and sample, though the input varies.",
        "the output moves by less than 1e-9.",
        "Look for zero weights, a relu that is always off, or saturated gates.",
    ),
    FindingKind(
        "GF208",
        "units that never forget",
        "Units whose keep gate stays above 0.999: they add up and are never cleared.",
        "as said, throughout the data; information.",
        "Nothing, if long memory is wanted; else lower the keep gate's bias.",
    ),
    FindingKind(
        "GF301",
        "weights that are not finite",
        "NaN or inf in a weight makes everything that it touches NaN.",
        "any such number.",
        "Go back to the last good checkpoint; find the step with `gradflow saturate` or anomaly "
        "mode.",
    ),
    FindingKind(
        "GF302",
        "quantised or unsupported layer",
        "A recurrent layer was found and could not be measured.",
        "it is stored in whole numbers, or its tensors make no known layer.",
        "Give the float model that it was made from; a cell of your own by --model.",
    ),
    FindingKind(
        "GF303",
        "not finite",
        "A state, or a gradient of the loss, is NaN or inf. The place is the first one in the "
        "order of the backward pass.",
        "any such number.",
        "Look at that step's input and at what the layer feeds: gradflow saturate names the "
        "operation.",
    ),
    FindingKind(
        "GF304",
        "input scale",
        "The input has numbers in the hundreds or thousands, as a raw series has: gates saturate, "
        "and hardly learn.",
        "a warning where the root mean square of what a layer reads is above 100.",
        "Standardise the series: subtract its mean and divide by its standard deviation.",
    ),
    FindingKind(
        "GF305",
        "the twin parts from the fused layer",
        "The layer was run step by step in float64 and the result differs from the fused layer's. "
        "Within a few roundings that is precision; a chaotic network parts whatever one does, and "
        "the measurement holds for the float64 trajectory.",
        "beyond 1e-6 of the largest output in float64 and float32, and 4 eps in half precisions; "
        "information where rounding alone parts them as far, or the network is chaotic; else an "
        "error.",
        "Believe statistics over many steps, and no single late step.",
    ),
)  # fmt: skip
FINDING_KINDS: dict[str, FindingKind] = {kind.code: kind for kind in _KINDS}
"""Code to kind, in order."""


def finding_kinds(code: str | None = None) -> tuple[FindingKind, ...]:
    """Return the kind of a code, in either case; all where None.

    Raises:
        UnknownNameError: there is no such code.
    """
    if code is None:
        return tuple(FINDING_KINDS.values())
    kind = FINDING_KINDS.get(code.strip().upper())
    if kind is None:
        known = nearest_name(code.strip().upper(), FINDING_KINDS)
        raise UnknownNameError(f"there is no finding {code!r}. {known}")
    return (kind,)
