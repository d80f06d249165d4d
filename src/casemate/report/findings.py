"""An audit's result as JSON values, the form that other programs read. SARIF is in `sarif`."""

from __future__ import annotations

from typing import Any

from casemate.finding import AuditResult, Clause, Finding, FlowStep, Unread

SCHEMA_VERSION = 1


def to_json(result: AuditResult) -> dict[str, Any]:
    """The result as plain JSON values: exact texts, no field left out. Print it with `visible.as_json`."""
    return {
        "schema_version": SCHEMA_VERSION,
        "findings": [finding_json(finding) for finding in result.findings],
        "ledger": {
            "analysed": result.ledger.analysed,
            "skipped": [_unread(file) for file in result.ledger.skipped],
            "failed": [_unread(file) for file in result.ledger.failed],
        },
        "model": {"name": result.model.name, "note": result.model.note},
    }


def finding_json(finding: Finding) -> dict[str, Any]:
    """One finding as plain JSON values, flat."""
    place = finding.location
    return {
        "rule": finding.rule,
        "path": place.path,
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line,
        "end_column": place.end_column,
        "cwe": finding.cwe,
        "name": finding.name,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "flow": [_step(step) for step in finding.flow],
        "evidence": finding.evidence,
        "references": list(finding.references),
        "technique": finding.technique,
        "clauses": [_clause(clause) for clause in finding.clauses],
        "fingerprint": finding.fingerprint,
        "suppressed": finding.suppressed,
        "explanation": finding.explanation,
        "fix": finding.fix,
        "message": finding.message,
    }


def _step(step: FlowStep) -> dict[str, Any]:
    place = step.location
    return {"path": place.path, "line": place.line, "column": place.column, "note": step.note}


def _clause(clause: Clause) -> dict[str, str]:
    return {"framework": clause.framework, "id": clause.id, "title": clause.title}


def _unread(file: Unread) -> dict[str, str]:
    return {"path": file.path, "reason": file.reason}
