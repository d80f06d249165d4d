"""An audit's result as JSON values, the form that other programs read. SARIF is in `sarif`."""

from __future__ import annotations

from typing import Any

from casemate.finding import AuditResult, Clause, Finding, FlowStep, Location, Patch, Unread

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
            "searched": result.ledger.searched,
            "remarks": [{"path": remark.path, "text": remark.text} for remark in result.ledger.remarks],
            "limited": result.ledger.limited,
        },
        "suppressions": {"count": result.marked, "honoured": result.honoured},
        "baseline": _trend(result),
        "model": {"name": result.model.name, "note": result.model.note},
    }


def finding_json(finding: Finding) -> dict[str, Any]:
    """One finding as plain JSON values, flat but for its flow, clauses, patch, and cell (of a notebook, else null)."""
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
        "scope": finding.scope,
        "known": finding.known,
        "patch": _patch(finding.patch),
        "cell": _cell(place),
    }


def _step(step: FlowStep) -> dict[str, Any]:
    place = step.location
    return {"path": place.path, "line": place.line, "column": place.column, "note": step.note, "text": step.text}


def _trend(result: AuditResult) -> dict[str, Any] | None:
    if result.trend is None:
        return None
    gone = [{"fingerprint": row.fingerprint, "rule": row.rule, "path": row.path} for row in result.trend.gone]
    return {
        "new": len(result.open),
        "known": len(result.known),
        "gone": gone,
        "unseen": result.trend.unseen,
    }


def _patch(patch: Patch | None) -> dict[str, Any] | None:
    if patch is None:
        return None
    return {
        "first_line": patch.first,
        "last_line": patch.last,
        "before": patch.before,
        "after": patch.after,
        "masked": patch.masked,
    }


def _cell(place: Location) -> dict[str, int] | None:
    return {"number": place.cell.number, "line": place.cell.line} if place.cell else None


def _clause(clause: Clause) -> dict[str, str]:
    return {"framework": clause.framework, "id": clause.id, "title": clause.title}


def _unread(file: Unread) -> dict[str, str]:
    return {"path": file.path, "reason": file.reason}
