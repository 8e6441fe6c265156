"""What an inspection says in words: verdict, findings, cells of the table."""

from __future__ import annotations

from gradflow.present.numbers import number_text
from gradflow.records.inspect import Finding, InspectedLayer, InspectResult

MOST_FINDINGS = 12


def horizon_text(layer: InspectedLayer) -> str:
    """Return a horizon in steps, or that it lies beyond the data."""
    if not layer.lag:
        return "-"
    return f">{layer.lag[-1]}" if layer.horizon is None else number_text(layer.horizon, 3)


def place_text(layer: InspectedLayer) -> str:
    """Return where a layer is: its module and level, and that it reads backwards where it does."""
    return f"{layer.title}, reverse" if layer.direction == "reverse" else layer.title


def keep_gate_text(layer: InspectedLayer) -> str:
    """Return the keep gate's mean value."""
    gate = next((gate for gate in layer.gates if gate.role == "keep"), None)
    if gate is None or gate.value_mean is None:
        return "-"
    return f"{gate.value_mean:.3f}"


def saturation_text(layer: InspectedLayer) -> str:
    """Return the largest share of a gate's values within 0.01 of 0 or 1, in percent."""
    shares = [gate.saturated_fraction for gate in layer.gates]
    known = [share for share in shares if share is not None]
    return f"{100 * max(known):.0f}%" if known else "-"


def bias_text(layer: InspectedLayer) -> str:
    """Return the keep gate's effective bias."""
    gate = next((gate for gate in layer.gates if gate.role == "keep"), None)
    return number_text(None if gate is None else gate.effective_bias_mean, 3)


def finding_text(finding: Finding) -> str:
    """Return a finding as one line: code, severity, place, message."""
    places = [each for each in (finding.layer, finding.direction, finding.gate) if each]
    place = f" [{', '.join(places)}]" if places else ""
    return f"{finding.code} {finding.severity}{place}: {finding.message}"


def finding_lines(result: InspectResult) -> tuple[str, ...]:
    """Return the findings as lines, the gravest first, each warning with what to try."""
    shown = []
    told = [finding for finding in result.findings if finding.code != "GF100"]  # the table has it
    for finding in told[:MOST_FINDINGS]:
        shown.append(finding_text(finding))
        if finding.severity != "info":
            shown.append(f"    Try: {finding.advice}")
    left = len(told) - MOST_FINDINGS
    return (*shown, f"... and {left} more: see the JSON.") if left > 0 else tuple(shown)


def layer_title(layer: InspectedLayer) -> str:
    """Return a layer as a panel's title writes it."""
    return f"{layer.title}, {layer.direction} ({layer.kind})"
