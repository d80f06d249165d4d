"""An audit's result as SARIF 2.1.0 that code hosts accept.

Standard: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html. Hosts refuse a whole file for one 0 in a
region and lose alerts whose address lacks the folder of a monorepo, so places are bounded and addresses prefixed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from casemate.finding import AuditResult, Finding, Ledger, Location, Severity, Unread
from casemate.report.visible import visible

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_CWE_VERSIONED_HOME = "https://cwe.mitre.org/"
_ROOT = "%SRCROOT%"
_LEVELS = {
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

_LONGEST = 1024
"""Characters that hosts take in a rule's descriptions."""


def to_sarif(result: AuditResult, *, version: str, prefix: str = "") -> dict[str, Any]:
    """A SARIF log with one run.

    Args:
        result: the audit.
        version: Casemate's version.
        prefix: folder of the audited root inside its repository (`services/api`), with forward slashes.
    """
    rules = _rules(result.findings)
    weaknesses = sorted({finding.cwe: finding for finding in result.findings}.values(), key=lambda f: _number(f.cwe))
    taxa = [finding.cwe for finding in weaknesses]
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": _driver(list(rules.values()), taxa, version=version)},
                "taxonomies": [_taxonomy(weaknesses)],
                "invocations": [_invocation(result.ledger, prefix)],
                "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
                "columnKind": "unicodeCodePoints",
                "results": [_result(f, list(rules), taxa=taxa, prefix=prefix) for f in result.findings],
                "properties": {
                    "analysed": result.ledger.analysed,
                    "model": visible(result.model.name),
                    "modelNote": visible(result.model.note),
                },
            }
        ],
    }


def address(path: str, prefix: str = "") -> str:
    """A path as a relative URI reference from the repository's root, percent-encoded byte by byte."""
    whole = "/".join(part for part in (*prefix.split("/"), *path.split("/")) if part not in {"", "."})
    return quote(whole, safe="/", errors="surrogateescape") if _is_utf8_or_escaped(whole) else quote(visible(whole))


def region(place: Location) -> dict[str, int]:
    """A SARIF region: every number at least 1, and the end not before the start."""
    line, column = max(1, place.line), max(1, place.column)
    end_line, end_column = max(line, place.end_line), max(1, place.end_column)
    if end_line == line:
        end_column = max(column, end_column)
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def _driver(rules: list[Finding], taxa: list[str], *, version: str) -> dict[str, Any]:
    return {
        "name": "Casemate",
        "semanticVersion": version,
        "rules": [_rule(finding, taxa) for finding in rules],
        "notifications": [
            {"id": "skipped", "shortDescription": {"text": "A file was left out on purpose."}},
            {"id": "failed", "shortDescription": {"text": "A file could not be analysed."}},
        ],
        "supportedTaxonomies": [{"name": "CWE", "index": 0}],
    }


def _rules(findings: Iterable[Finding]) -> dict[str, Finding]:
    """One finding to describe each rule by: the first, which is the worst."""
    rules: dict[str, Finding] = {}
    for finding in findings:
        rules.setdefault(finding.rule, finding)
    return rules


def _rule(finding: Finding, taxa: list[str]) -> dict[str, Any]:
    name = f"{finding.cwe}: {finding.name}"
    number = _number(finding.cwe)
    rule: dict[str, Any] = {
        "id": visible(finding.rule),
        "name": re.sub(r"\W", "", finding.rule.title()) or "Rule",
        "shortDescription": _text(name),
        "fullDescription": _text(finding.message or name),
        "help": _help(finding),
        "defaultConfiguration": {"level": _LEVELS[finding.severity]},
        "relationships": [{"target": _taxon(finding.cwe, taxa), "kinds": ["superset"]}],
        "properties": {
            "security-severity": _SCORES[finding.severity],
            "precision": finding.confidence.value,
            "tags": ["security", f"external/cwe/cwe-{number:03}"],
        },
    }
    links = [link for link in finding.references if link.startswith("https://")]
    return rule | ({"helpUri": links[0]} if links else {})


def _help(finding: Finding) -> dict[str, str]:
    lines = [f"{finding.cwe}: {finding.name}", finding.message, *finding.references]
    text = visible("\n\n".join(line for line in lines if line))
    return {"text": text}


def _taxonomy(weaknesses: list[Finding]) -> dict[str, Any]:
    return {
        "name": "CWE",
        "organization": "MITRE",
        "informationUri": _CWE_VERSIONED_HOME,
        "shortDescription": {"text": "The MITRE Common Weakness Enumeration"},
        "isComprehensive": False,
        "taxa": [
            {
                "id": finding.cwe,
                "shortDescription": _text(finding.name or finding.cwe),
                "helpUri": f"{_CWE_VERSIONED_HOME}data/definitions/{_number(finding.cwe)}.html",
            }
            for finding in weaknesses
        ],
    }


def _result(finding: Finding, rules: list[str], *, taxa: list[str], prefix: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": visible(finding.rule),
        "ruleIndex": rules.index(finding.rule),
        "level": _LEVELS[finding.severity],
        "message": {"text": visible(finding.message or f"{finding.cwe}: {finding.name}")},
        "locations": [{"physicalLocation": _place(finding.location, prefix, snippet=finding.evidence)}],
        # Hosts read the first name; the second is ours, for tools that compare runs.
        "partialFingerprints": {
            "primaryLocationLineHash": f"{finding.fingerprint}:1",
            "casemate/v1": finding.fingerprint,
        },
        "taxa": [_taxon(finding.cwe, taxa)],
        "suppressions": _suppressions(finding),
        "properties": _properties(finding),
    }
    return result | ({"codeFlows": [_flow(finding, prefix)]} if finding.flow else {})


def _properties(finding: Finding) -> dict[str, Any]:
    return {
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "technique": finding.technique,
        "clauses": [f"{clause.framework} {clause.id}" for clause in finding.clauses],
        "explanation": visible(finding.explanation),
        "fix": visible(finding.fix),
    }


def _suppressions(finding: Finding) -> list[dict[str, str]]:
    # Who writes the code must not choose what is shown: the mark is recorded and waits for a person ("underReview").
    # An empty list says "not suppressed", an absent one would say "unknown" (section 3.27.23).
    mark = {"kind": "inSource", "status": "underReview", "justification": "A suppression mark in the audited source."}
    return [mark] if finding.suppressed else []


def _flow(finding: Finding, prefix: str) -> dict[str, Any]:
    steps = [
        {"location": {"physicalLocation": _place(step.location, prefix), "message": {"text": visible(step.note)}}}
        for step in finding.flow
    ]
    return {"threadFlows": [{"locations": steps}]}


def _place(place: Location, prefix: str, *, snippet: str = "") -> dict[str, Any]:
    where: dict[str, Any] = dict(region(place))
    if snippet:
        where["snippet"] = {"text": visible(snippet)}
    return {"artifactLocation": {"uri": address(place.path, prefix), "uriBaseId": _ROOT}, "region": where}


def _invocation(ledger: Ledger, prefix: str) -> dict[str, Any]:
    notes = [_notification(file, prefix, kind="skipped", level="note") for file in ledger.skipped]
    notes += [_notification(file, prefix, kind="failed", level="error") for file in ledger.failed]
    return {"executionSuccessful": ledger.complete, "toolExecutionNotifications": notes}


def _notification(file: Unread, prefix: str, *, kind: str, level: str) -> dict[str, Any]:
    return {
        "descriptor": {"id": kind, "index": ("skipped", "failed").index(kind)},
        "level": level,
        "message": {"text": visible(f"{file.path}: {kind}, {file.reason}")},
        "locations": [
            {"physicalLocation": {"artifactLocation": {"uri": address(file.path, prefix), "uriBaseId": _ROOT}}}
        ],
    }


def _taxon(cwe: str, taxa: list[str]) -> dict[str, Any]:
    return {"id": cwe, "index": taxa.index(cwe), "toolComponent": {"name": "CWE", "index": 0}}


def _number(cwe: str) -> int:
    digits = cwe.removeprefix("CWE-")
    return int(digits) if digits.isdigit() else 0


def _text(text: str) -> dict[str, str]:
    return {"text": visible(text)[:_LONGEST]}


def _is_utf8_or_escaped(path: str) -> bool:
    """Whether the path's bytes can be had back: lone surrogates outside the escape range cannot."""
    try:
        path.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return False
    return True
