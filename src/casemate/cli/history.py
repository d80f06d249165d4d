"""Audits that were made on this machine, as sealed runs: what the page shows."""

from __future__ import annotations

import json

from casemate import runs
from casemate.agents import dossier
from casemate.agents.phrases import Language
from casemate.errors import CasemateError
from casemate.finding import AuditResult
from casemate.report import findings, html
from casemate.report.visible import as_json, visible
from casemate.settings import Settings
from casemate.web.services import AuditReport

_KIND = "audit"
_FINDINGS = "findings.json"
_REPORT = "report.html"


def keep(config: Settings, result: AuditResult, *, title: str, language: Language) -> None:
    """Seal an audit's findings and report in a run of its own, readable by us alone.

    Raises:
        CasemateError: the home folder does not take them.
    """
    run = runs.create(config.runs, _KIND)
    run.write(_FINDINGS, as_json(findings.to_json(result)))
    run.write(_REPORT, html.render(dossier.document(result, language=language, root=title)))
    run.seal({"title": visible(title), "findings": len(result.findings), "complete": result.ledger.complete})


def latest(config: Settings) -> AuditReport | None:
    """The newest audit; None if there is none, or if it cannot be read any more."""
    run = runs.latest(config.runs, _KIND)
    if run is None:
        return None
    try:
        return AuditReport(str(run.manifest["title"]), json.loads(run.read(_FINDINGS)), run.read(_REPORT))
    except (CasemateError, ValueError, KeyError):
        return None
