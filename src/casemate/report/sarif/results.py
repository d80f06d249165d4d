"""A finding as a SARIF result: place, flow, marks in the source, baseline, and a fix that can be applied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from casemate.finding import AuditResult, Finding, Patch
from casemate.report.sarif.manual import LEVELS, Manuals
from casemate.report.sarif.places import artifact, physical
from casemate.report.visible import visible

_MOST_STEPS = 1000
"""Locations of a thread flow that hosts show."""


def result(
    finding: Finding, audit: AuditResult, *, manuals: Manuals, indexes: Mapping[str, int], prefix: str
) -> dict[str, Any]:
    """One result.

    Args:
        finding: what was found.
        audit: the whole, for its policy on marks and its baseline.
        manuals: what the rules say.
        indexes: of rules and weaknesses, by their ids.
        prefix: folder of the audited root inside its repository.
    """
    place: dict[str, Any] = {"physicalLocation": physical(finding.location, prefix, snippet=finding.evidence)}
    if finding.scope:
        place["logicalLocations"] = [{"fullyQualifiedName": visible(finding.scope)}]
    told: dict[str, Any] = {
        "ruleId": visible(finding.rule),
        "ruleIndex": indexes[finding.rule],
        "level": LEVELS[finding.severity],
        "message": {"text": visible(_message(finding, manuals))},
        "locations": [place],
        # Hosts read the first name; the second is ours, for tools that compare runs.
        "partialFingerprints": {
            "primaryLocationLineHash": f"{finding.fingerprint}:1",
            "casemate/v1": finding.fingerprint,
        },
        "taxa": [taxon(finding.cwe, indexes)],
        "suppressions": _suppressions(finding, honoured=audit.honoured),
        "properties": _properties(finding),
    }
    if audit.trend is not None:
        told["baselineState"] = "unchanged" if finding.known else "new"
    if finding.flow:
        told["codeFlows"] = [_flow(finding, prefix)]
    if finding.patch is not None and _can_be_applied(finding.patch):
        told["fixes"] = [_fix(finding.patch, finding.location.path, prefix=prefix)]
    return told


def taxon(cwe: str, indexes: Mapping[str, int]) -> dict[str, Any]:
    """A weakness as a reference into the taxonomy of the run."""
    return {"id": cwe, "index": indexes[cwe], "toolComponent": {"name": "CWE", "index": 0}}


def _message(finding: Finding, manuals: Manuals) -> str:
    manual, cell = manuals.get(finding.rule), finding.location.cell
    text = (manual.message if manual else finding.message) or f"{finding.cwe}: {finding.name}"
    return f"[cell {cell.number}, line {cell.line}] {text}" if cell else text


def _properties(finding: Finding) -> dict[str, Any]:
    cell = finding.location.cell
    facts = {
        "explanation": visible(finding.explanation),
        "fix": "" if finding.patch else visible(finding.fix),
        "cell": {"number": cell.number, "line": cell.line} if cell else None,
    }
    given = {name: value for name, value in facts.items() if value}
    return {"severity": finding.severity.value, "confidence": finding.confidence.value, **given}


def _suppressions(finding: Finding, *, honoured: bool) -> list[dict[str, str]]:
    # Who writes the code must not choose what is shown: the mark is recorded and waits for a person ("underReview")
    # unless the policy honours it. An empty list says "not suppressed", an absent one "unknown" (section 3.27.23).
    status = "accepted" if honoured else "underReview"
    mark = {"kind": "inSource", "status": status, "justification": "A suppression mark in the audited source."}
    return [mark] if finding.suppressed else []


def _flow(finding: Finding, prefix: str) -> dict[str, Any]:
    steps = finding.flow
    if len(steps) > _MOST_STEPS:
        steps = (*steps[: _MOST_STEPS - 1], steps[-1])
    locations = [
        {
            "location": {
                "physicalLocation": physical(step.location, prefix, snippet=step.text),
                "message": {"text": visible(step.note)},
            }
        }
        for step in steps
    ]
    return {"threadFlows": [{"locations": locations}]}


def _can_be_applied(patch: Patch) -> bool:
    """Whether what we may show is what belongs in the file, character by character."""
    return not patch.masked and visible(patch.after) == patch.after


def _fix(patch: Patch, path: str, *, prefix: str) -> dict[str, Any]:
    last = patch.before.rpartition("\n")[2]
    deleted = {"startLine": patch.first, "startColumn": 1, "endLine": patch.last, "endColumn": len(last) + 1}
    replacement = {"deletedRegion": deleted, "insertedContent": {"text": patch.after}}
    change = {"artifactLocation": artifact(path, prefix), "replacements": [replacement]}
    return {"description": {"text": f"Replace lines {patch.first} to {patch.last}."}, "artifactChanges": [change]}
