"""The pages: a start page with chat and the latest audit, that audit's full report, and those of the graph."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route, Router
from starlette.staticfiles import StaticFiles

from casemate.engine.interface import Ready
from casemate.finding import Severity
from casemate.report import html
from casemate.report.visible import visible
from casemate.web.atlas import pages as atlas
from casemate.web.replies import App
from casemate.web.services import AuditReport, Services
from casemate.web.texts import LANGUAGES, TEXTS, language

_HERE = Path(__file__).parent
_CONSOLE_WORDS = (
    *("you", "thinking", "working", "citations", "offered", "checked", "unchecked", "none_cited", "stopped", "cut"),
    *("broken", "failed", "send", "stop"),
)
"""What the script needs to say; it stands in the page as data."""


def console(services: Services) -> App:
    """The pages as an ASGI application."""
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["visible"] = visible

    async def start(request: Request) -> Response:
        chosen = language(request.query_params.get("lang", ""), request.headers.get("accept-language", ""))
        page = environment.get_template("start.html").render(
            t=SimpleNamespace(**TEXTS[chosen]),  # a mapping's own methods would hide words such as `clear`
            language=chosen,
            other=next(name for name in LANGUAGES if name != chosen),
            words={name: TEXTS[chosen][name] for name in _CONSOLE_WORDS},
            model=services.model_name,
            note=services.note,
            local=services.local,
            ready=isinstance(services.ready(), Ready),
            groundable=services.grounding is not None,
            address=str(request.base_url).rstrip("/"),
            audit=_summary(await asyncio.to_thread(services.report)),
        )
        return HTMLResponse(page, headers={"Vary": "Accept-Language"})

    async def report(_request: Request) -> Response:
        latest = await asyncio.to_thread(services.report)
        if latest is None:
            return PlainTextResponse("nothing was audited yet: run casemate audit PATH", status_code=404)
        return HTMLResponse(latest.html, headers={"Content-Security-Policy": html.policy()})

    static = StaticFiles(directory=_HERE / "static")
    graph = atlas.routes(services.graph, environment)
    return ExceptionMiddleware(Router([Route("/", start), Route("/report", report), *graph, Mount("/static", static)]))


def _summary(report: AuditReport | None) -> Mapping[str, Any] | None:
    """What the start page tells of an audit document; the order of findings is the audit's own, worst first."""
    if report is None:
        return None
    findings, ledger = report.document["findings"], report.document["ledger"]
    counts = {name: sum(finding["severity"] == name for finding in findings) for name in map(str, Severity)}
    return {
        "title": report.title,
        "findings": findings,
        "counts": {name: count for name, count in counts.items() if count},
        "analysed": ledger["analysed"],
        "skipped": len(ledger["skipped"]),
        "failed": ledger["failed"],
    }
