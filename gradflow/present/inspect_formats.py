"""Findings for machines that read builds: GitHub's workflow commands, and JUnit's XML."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ElementTree

from gradflow.present.inspect_words import finding_text
from gradflow.records.finding_codes import FINDING_KINDS
from gradflow.records.inspect import SEVERITIES, Finding, InspectResult

_GITHUB = {"error": "error", "warning": "warning", "info": "notice"}


def github_text(result: InspectResult) -> str:
    """Return a workflow command for each finding, which GitHub shows as an annotation.

    The verdict's first line stands first, as plain text.
    """
    lines = [_escaped(result.verdict[0])] if result.verdict else []
    for finding in result.findings:
        title = _escaped(f"{finding.code} {FINDING_KINDS[finding.code].title}")
        title = title.replace(":", "%3A").replace(",", "%2C")  # they end a property
        text = finding_text(finding)
        text += "" if finding.severity == "info" else f" Try: {finding.advice}"
        lines.append(f"::{_GITHUB[finding.severity]} title={title}::{_escaped(text)}")
    return "\n".join(lines) + "\n"


def junit_text(result: InspectResult) -> str:
    """Return a JUnit document: a case for each layer and direction, and one for the model.

    A case fails by its findings at or above `fail_on`; what is less grave is its output.
    """
    places = [(layer.title, layer.direction) for layer in result.layers]
    cases: list[tuple[str, list[Finding]]] = [
        (f"{title}, {way}", [f for f in result.findings if (f.layer, f.direction) == (title, way)])
        for title, way in places
    ]
    rest = [f for f in result.findings if (f.layer, f.direction) not in places]
    cases.append(("the model as a whole", rest))
    suite = ElementTree.Element("testsuite", name="gradflow inspect", tests=f"{len(cases)}")
    failed = sum(_add_case(suite, name, found, result) for name, found in cases)
    suite.set("failures", f"{failed}")
    text = io.BytesIO()
    ElementTree.ElementTree(suite).write(text, encoding="utf-8", xml_declaration=True)
    return text.getvalue().decode() + "\n"


def _add_case(
    suite: ElementTree.Element, name: str, findings: list[Finding], result: InspectResult
) -> bool:
    """Add a case; return whether it fails."""
    case = ElementTree.SubElement(suite, "testcase", name=name, classname="gradflow.inspect")
    grave = [finding for finding in findings if _fails(finding, result)]
    if grave:
        codes = ", ".join(dict.fromkeys(finding.code for finding in grave))
        failure = ElementTree.SubElement(case, "failure", message=codes, type=grave[0].severity)
        failure.text = "\n".join(f"{finding_text(f)} Try: {f.advice}" for f in grave)
    others = [finding_text(finding) for finding in findings if finding not in grave]
    if others:
        ElementTree.SubElement(case, "system-out").text = "\n".join(others)
    return bool(grave)


def _fails(finding: Finding, result: InspectResult) -> bool:
    least = result.config.get("fail_on", "error")
    if least not in SEVERITIES:
        return False
    return SEVERITIES.index(finding.severity) >= SEVERITIES.index(least)


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
