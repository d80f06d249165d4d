"""What a rule says of itself in SARIF: handed in by whoever knows the rules, in the reader's language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from casemate.finding import Finding, Severity
from casemate.report.sarif.places import plain
from casemate.report.visible import visible

LEVELS = {
    Severity.CRITICAL: "error",
    Severity.HIGH: "error",
    Severity.MEDIUM: "warning",
    Severity.LOW: "note",
    Severity.INFO: "note",
}
_SCORES = {
    Severity.CRITICAL: "9.5",
    Severity.HIGH: "8.0",
    Severity.MEDIUM: "5.5",
    Severity.LOW: "3.0",
    Severity.INFO: "0.0",
}
"""`security-severity` as hosts bin it: above 9 critical, from 7 high, from 4 medium, above 0 low."""


@dataclass(frozen=True, slots=True)
class Manual:
    """A rule in words: its short `title`, what its findings say, and the whole manual as Markdown."""

    title: str
    message: str
    markdown: str


Manuals = Mapping[str, Manual]
"""By rule id; a rule without one is told by its findings."""


def rule(finding: Finding, *, manual: Manual | None, taxon: dict[str, Any]) -> dict[str, Any]:
    """The descriptor of the rule that made a finding (the worst one of the rule)."""
    official = f"{finding.cwe}: {finding.name}"
    digits = finding.cwe.removeprefix("CWE-")
    described: dict[str, Any] = {
        "id": visible(finding.rule),
        "name": re.sub(r"\W", "", finding.rule.title()) or "Rule",
        "shortDescription": plain(f"{finding.cwe}: {manual.title}" if manual else official),
        "fullDescription": plain((manual.message if manual else finding.message) or official),
        "help": _help(finding, manual),
        "defaultConfiguration": {"level": LEVELS[finding.severity]},
        "relationships": [{"target": taxon, "kinds": ["superset"]}],
        "properties": {
            "security-severity": _SCORES[finding.severity],
            "precision": finding.confidence.value,
            "technique": finding.technique,
            "clauses": [f"{clause.framework} {clause.id}" for clause in finding.clauses],
            "tags": ["security", f"external/cwe/cwe-{int(digits) if digits.isdigit() else 0:03}"],
        },
    }
    links = [link for link in finding.references if link.startswith("https://")]
    return described | ({"helpUri": links[0]} if links else {})


def _help(finding: Finding, manual: Manual | None) -> dict[str, str]:
    lines = (f"{finding.cwe}: {finding.name}", manual.message if manual else finding.message, *finding.references)
    text = {"text": visible("\n\n".join(line for line in lines if line))}
    return text | ({"markdown": visible(manual.markdown)} if manual else {})
