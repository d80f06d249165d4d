"""The SARIF log: one run with its tool, its taxonomy, how it went, and its results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from casemate.finding import AuditResult, Finding, Gone, Ledger, Unread
from casemate.report.sarif.manual import Manuals, rule
from casemate.report.sarif.places import ROOT, artifact, plain
from casemate.report.sarif.results import result, taxon
from casemate.report.visible import visible

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_CWE_HOME = "https://cwe.mitre.org/"
_MOST_RESULTS = 25_000
"""Results that code hosts take in a run; they show the worst 5,000."""
_MOST_FAILED = 1000
_MOST_NAMED = 10
_NO_MANUALS: Manuals = {}
_KINDS = {
    "skipped": ("note", "Files were left out on purpose."),
    "failed": ("error", "A file could not be analysed."),
    "cut": ("warning", "The log does not hold everything that was found."),
}


def to_sarif(
    audit: AuditResult, *, version: str, prefix: str = "", manuals: Manuals = _NO_MANUALS, most: int = _MOST_RESULTS
) -> dict[str, Any]:
    """A SARIF log with one run.

    Args:
        audit: the result.
        version: Casemate's version.
        prefix: folder of the audited root inside its repository (`services/api`), with forward slashes.
        manuals: what the rules say of themselves, by rule id.
        most: how many results, the worst, the log may hold; the rest is counted in a notification.
    """
    found = audit.findings[:most]
    rules: dict[str, Finding] = {}
    for finding in found:
        rules.setdefault(finding.rule, finding)
    weaknesses = sorted({finding.cwe: finding for finding in found}.values(), key=lambda finding: _number(finding.cwe))
    indexes = {finding.cwe: index for index, finding in enumerate(weaknesses)} | {
        name: index for index, name in enumerate(rules)
    }
    described = [
        rule(finding, manual=manuals.get(name), taxon=taxon(finding.cwe, indexes)) for name, finding in rules.items()
    ]
    run = {
        "tool": {"driver": _driver(described, version)},
        "taxonomies": [_taxonomy(weaknesses)],
        "invocations": [_invocation(audit, prefix, cut=len(audit.findings) - len(found))],
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the repository."}}},
        "columnKind": "unicodeCodePoints",
        "results": [result(finding, audit, manuals=manuals, indexes=indexes, prefix=prefix) for finding in found],
        "properties": _properties(audit),
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _driver(rules: list[dict[str, Any]], version: str) -> dict[str, Any]:
    return {
        "name": "Casemate",
        "semanticVersion": version,
        "rules": rules,
        "notifications": [{"id": kind, "shortDescription": {"text": text}} for kind, (_, text) in _KINDS.items()],
        "supportedTaxonomies": [{"name": "CWE", "index": 0}],
    }


def _taxonomy(weaknesses: list[Finding]) -> dict[str, Any]:
    return {
        "name": "CWE",
        "organization": "MITRE",
        "informationUri": _CWE_HOME,
        "shortDescription": {"text": "The MITRE Common Weakness Enumeration"},
        "isComprehensive": False,
        "taxa": [
            {
                "id": finding.cwe,
                "shortDescription": plain(finding.name or finding.cwe),
                "helpUri": f"{_CWE_HOME}data/definitions/{_number(finding.cwe)}.html",
            }
            for finding in weaknesses
        ],
    }


def _invocation(audit: AuditResult, prefix: str, *, cut: int) -> dict[str, Any]:
    notes = [*_skipped(audit.ledger, prefix), *_failed(audit.ledger, prefix)]
    if cut:
        notes.append(_notification("cut", f"{cut} milder results are left out: hosts take no more in a run."))
    return {"executionSuccessful": audit.ledger.complete, "toolExecutionNotifications": notes}


def _skipped(ledger: Ledger, prefix: str) -> Iterable[dict[str, Any]]:
    """One notification a reason, which names the first files; a project may skip many thousands."""
    reasons: dict[str, list[str]] = {}
    for file in ledger.skipped:
        reasons.setdefault(file.reason, []).append(file.path)
    for reason, paths in reasons.items():
        named = ", ".join(paths[:_MOST_NAMED]) + (", …" if len(paths) > _MOST_NAMED else "")
        text = f"{len(paths)} skipped, {reason}: {named}"
        yield _notification("skipped", text, paths=paths[:_MOST_NAMED], prefix=prefix)


def _failed(ledger: Ledger, prefix: str) -> Iterable[dict[str, Any]]:
    for file in ledger.failed[:_MOST_FAILED]:
        yield _failure(file, prefix)
    if rest := ledger.failed[_MOST_FAILED:]:
        yield _notification("failed", f"{len(rest)} more files could not be analysed")


def _failure(file: Unread, prefix: str) -> dict[str, Any]:
    return _notification("failed", f"{file.path}: failed, {file.reason}", paths=(file.path,), prefix=prefix)


def _notification(kind: str, text: str, *, paths: Iterable[str] = (), prefix: str = "") -> dict[str, Any]:
    locations = [{"physicalLocation": {"artifactLocation": artifact(path, prefix)}} for path in paths]
    note: dict[str, Any] = {
        "descriptor": {"id": kind, "index": list(_KINDS).index(kind)},
        "level": _KINDS[kind][0],
        "message": {"text": visible(text)},
    }
    return note | ({"locations": locations} if locations else {})


def _properties(audit: AuditResult) -> Mapping[str, Any]:
    facts: dict[str, Any] = {
        "analysed": audit.ledger.analysed,
        "model": visible(audit.model.name),
        "modelNote": visible(audit.model.note),
        "suppressions": {"count": audit.marked, "honoured": audit.honoured},
    }
    if audit.ledger.limited:
        facts["limited"] = visible(audit.ledger.limited)
    if audit.trend is not None:
        facts["baseline"] = {"gone": [_gone(row) for row in audit.trend.gone], "unseen": audit.trend.unseen}
    return facts


def _gone(row: Gone) -> dict[str, str]:
    return {"fingerprint": visible(row.fingerprint), "rule": visible(row.rule), "path": visible(row.path)}


def _number(cwe: str) -> int:
    digits = cwe.removeprefix("CWE-")
    return int(digits) if digits.isdigit() else 0
