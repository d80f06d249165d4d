"""The routes: parameters in, a page or its JSON twin out. Reading and rendering run in threads, as SQLite blocks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from casemate.errors import KnowledgeError
from casemate.knowledge.curated.edges import CURATED
from casemate.knowledge.node import Kind, Node
from casemate.report.visible import as_json, visible
from casemate.web.atlas import answers, data
from casemate.web.atlas.answers import Answer, Found, Lobby, Refusal, There, Unknown, Ways
from casemate.web.atlas.lending import Lender, Reading
from casemate.web.atlas.picture import WIDTH, picture
from casemate.web.atlas.sheet import Sheet, called
from casemate.web.atlas.words import EDGE_KINDS, KINDS, STATES, WORDS, relation
from casemate.web.texts import LANGUAGES, language

_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""Stricter than the console's, as there is no script, but for the forms: they work without one."""

_SHOWN = 8
"""How many neighbours of a bucket stand unfolded."""

Look = Callable[[Reading, Mapping[str, str]], Answer]


def routes(lender: Lender, environment: Environment) -> list[Route]:
    """The pages under `/graph`, each with its twin for scripts.

    Args:
        lender: lends the graph that is read.
        environment: renders the templates; text of the graph is made visible and escaped.
    """
    shelf = _Pages(lender, environment.overlay(finalize=_shown))
    return [
        Route("/graph", shelf.page(_search, "q")),
        Route("/graph.json", shelf.twin(_search, "q")),
        Route("/graph/node", shelf.page(_show, "id")),
        Route("/graph/node.json", shelf.twin(_show, "id")),
        Route("/graph/path", shelf.page(_ways, "from", "to")),
        Route("/graph/path.json", shelf.twin(_ways, "from", "to")),
    ]


@dataclass(frozen=True, slots=True)
class _Pages:
    lender: Lender
    environment: Environment

    def page(self, look: Look, *names: str) -> Callable[[Request], Any]:
        """A handler that answers with a page."""

        async def handle(request: Request) -> Response:
            given = _given(request, names)
            chosen = language(request.query_params.get("lang", ""), request.headers.get("accept-language", ""))
            return await asyncio.to_thread(self._page, look, _Visit(request.url.path, given, chosen))

        return handle

    def twin(self, look: Look, *names: str) -> Callable[[Request], Any]:
        """A handler that answers with JSON."""

        async def handle(request: Request) -> Response:
            return await asyncio.to_thread(self._twin, look, _given(request, names))

        return handle

    def _page(self, look: Look, visit: _Visit) -> Response:
        try:
            with self.lender() as reading:
                answer = look(reading, visit.given)
        except KnowledgeError as error:
            return self._rendered("graph_refused.html", visit, status=503, error=error)
        return self._told(answer, visit)

    def _told(self, answer: Answer, visit: _Visit) -> Response:
        match answer:
            case There(id_):
                return RedirectResponse(visit.link("/graph/node", id=id_), status_code=303)
            case Lobby() | Found():
                return self._rendered("graph.html", visit, answer=answer, is_lobby=isinstance(answer, Lobby))
            case Sheet():
                drawn = picture(answer, visit.language)
                return self._rendered("graph_node.html", visit, sheet=answer, picture=drawn, width=WIDTH)
            case Ways():
                return self._rendered("graph_path.html", visit, answer=answer)
            case Unknown():
                return self._rendered("graph_refused.html", visit, status=404, unknown=answer)
            case Refusal():
                return self._rendered("graph_refused.html", visit, status=400, refusal=answer)

    def _rendered(self, template: str, visit: _Visit, *, status: int = 200, **values: Any) -> Response:
        page = self.environment.get_template(template).render(visit.words() | values)
        headers = {"Vary": "Accept-Language", "Content-Security-Policy": _POLICY}
        return HTMLResponse(page, status_code=status, headers=headers)

    def _twin(self, look: Look, given: Mapping[str, str]) -> Response:
        try:
            with self.lender() as reading:
                status, value = data.told(look(reading, given))
        except KnowledgeError as error:
            status, value = data.failed(503, str(error), code="no_graph")
        return Response(as_json(value), status_code=status, media_type="application/json")


@dataclass(frozen=True, slots=True)
class _Visit:
    """Who asked for what: the path, the parameters that it reads, and the language of the answer."""

    path: str
    given: Mapping[str, str]
    language: str

    def link(self, path: str, **parameters: str) -> str:
        """An address of ours in the page's language."""
        return f"{path}?{urlencode({'lang': self.language} | parameters)}"

    def words(self) -> dict[str, Any]:
        """What every page may say and link to."""
        other = next(name for name in LANGUAGES if name != self.language)
        asked = {name: value for name, value in self.given.items() if value}
        return {
            "t": SimpleNamespace(**WORDS[self.language]),
            "language": self.language,
            "other": other,
            "kinds": KINDS[self.language],
            "one": KINDS["zh"] if self.language == "zh" else {kind: str(kind) for kind in Kind},
            "edge_kinds": EDGE_KINDS[self.language],
            "states": STATES[self.language],
            "given": self.given,
            "link": self.link,
            "called": lambda node: called(node, self.language),
            "relation": lambda name, outward: relation(name, self.language, outward=outward),
            "by": lambda source, version: f"{source} {version}" if source != CURATED else WORDS[self.language]["ours"],
            "record": lambda cve: Node(cve, Kind.VULNERABILITY, cve, "", "").address,
            "switch": f"{self.path}?{urlencode(asked | {'lang': other})}",
            "twin": f"{self.path}.json?{urlencode(asked)}",
            "shown": _SHOWN,
        }


def _given(request: Request, names: tuple[str, ...]) -> dict[str, str]:
    return {name: request.query_params.get(name, "").strip() for name in names}


def _search(reading: Reading, given: Mapping[str, str]) -> Answer:
    return answers.search(reading, given["q"])


def _show(reading: Reading, given: Mapping[str, str]) -> Answer:
    return answers.show(reading, given["id"])


def _ways(reading: Reading, given: Mapping[str, str]) -> Answer:
    return answers.ways(reading, given["from"], to=given["to"])


def _shown(value: Any) -> Any:
    """Every text that a template puts out, made visible; markup of ours passes."""
    return visible(value) if type(value) is str else value
