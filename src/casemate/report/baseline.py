"""A baseline: the findings that are known already, by fingerprint, so that only new ones are reported.

The file holds fingerprint, rule and path of each, and neither code nor secrets, so it may lie in a repository.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from casemate.errors import UsageError
from casemate.finding import AuditResult, Finding, Gone, Trend
from casemate.report.visible import as_json

SCHEMA_VERSION = 1
_KIND = "casemate-baseline"
_FIELDS = ("fingerprint", "rule", "path")

Baseline = Mapping[str, Gone]
"""What is known, by fingerprint."""


def to_text(findings: Iterable[Finding]) -> str:
    """The baseline file of these findings: one object, its rows in the order of path, rule and fingerprint."""
    rows = sorted({(found.location.path, found.rule, found.fingerprint) for found in findings})
    known = [{"fingerprint": name, "rule": rule, "path": path} for path, rule, name in rows]
    return as_json({"schema_version": SCHEMA_VERSION, "kind": _KIND, "findings": known})


def parse(text: str, *, where: str) -> Baseline:
    """A baseline file's rows by fingerprint.

    Args:
        text: what `to_text` wrote.
        where: the file's name, for the error.

    Raises:
        UsageError: it is not a baseline of this version.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _foreign("it is not JSON", where) from error
    if not isinstance(value, dict) or value.get("kind") != _KIND:
        raise _foreign("it is no baseline of Casemate", where)
    if value.get("schema_version") != SCHEMA_VERSION:
        raise _foreign(f"its schema_version is not {SCHEMA_VERSION}", where)
    rows = value.get("findings")
    if not isinstance(rows, list) or not all(map(_is_row, rows)):
        raise _foreign("a row lacks fingerprint, rule or path", where)
    return {row["fingerprint"]: Gone(*(row[name] for name in _FIELDS)) for row in rows}


def compared(result: AuditResult, baseline: Baseline) -> AuditResult:
    """The result with each finding that the baseline has marked as known, and with what became of the others.

    What the baseline has and the audit has not is gone only if its place was looked at: a finding in a file that
    failed or was left out, or beside the lines that were asked for, is counted as unseen.
    """
    findings = tuple(replace(found, known=found.fingerprint in baseline) for found in result.findings)
    here = {found.fingerprint for found in findings}
    away = [row for name, row in sorted(baseline.items()) if name not in here]
    unread = {file.path for file in (*result.ledger.failed, *result.ledger.skipped)}
    gone = () if result.ledger.limited else tuple(row for row in away if not _lies_in(row.path, unread))
    return replace(result, findings=findings, trend=Trend(gone, len(away) - len(gone)))


def _lies_in(path: str, unread: Collection[str]) -> bool:
    """Whether a file, or a folder around it, is among those that were not read."""
    return any(path.rsplit("/", depth)[0] in unread for depth in range(path.count("/") + 1))


def _is_row(row: Any) -> bool:
    return isinstance(row, dict) and all(isinstance(row.get(name), str) for name in _FIELDS)


def _foreign(why: str, where: str) -> UsageError:
    return UsageError(
        f"the baseline cannot be used: {why}", where=where, remedy="write a new one with --write-baseline FILE"
    )
