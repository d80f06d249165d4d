"""The answers as JSON values for scripts: the same facts as the page, in the shapes of `casemate kb --json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from casemate.web.atlas.answers import Answer, Found, Lobby, Refusal, There, Unknown, Way, Ways
from casemate.web.atlas.sheet import Sheet
from casemate.web.replies import Refused, error_object

SCHEMA_VERSION = 1


def told(answer: Answer) -> tuple[int, dict[str, Any]]:
    """An answer as HTTP status and JSON object."""
    match answer:
        case Unknown():
            status, value = failed(404, f"the graph has no {answer.asked!r}", code="no_such_node")
            return status, value | {"nearest": [node.id for node in answer.nearest]}
        case Refusal():
            said = f"longer than {answer.limit} characters" if answer.limit else "an id or a name is needed"
            return failed(400, said, code=answer.why)
        case _:
            return 200, _object(**_facts(answer))


def failed(status: int, message: str, *, code: str) -> tuple[int, dict[str, Any]]:
    """A status with an error object, as the API gives it."""
    return status, _object(**error_object(Refused(status, message, code=code)))


def _object(**values: Any) -> dict[str, Any]:
    return {"schema_version": SCHEMA_VERSION, **values}


def _facts(answer: Lobby | There | Found | Sheet | Ways) -> dict[str, Any]:
    match answer:
        case Lobby():
            return {"census": asdict(answer.census)}
        case There():
            return {"node": answer.id, "passages": []}
        case Found():
            return {"node": None, "passages": [asdict(passage) for _, passage in answer.results]}
        case Sheet():
            return _sheet(answer)
        case Ways():
            return {"from": answer.start.id, "to": answer.end.id, "routes": list(map(_way, answer.found))}


def _sheet(sheet: Sheet) -> dict[str, Any]:
    return {
        "node": asdict(sheet.node) | {"address": sheet.node.address},
        "aliases": sheet.aliases,
        "phrases": sheet.phrases,
        "editions": [asdict(edition) for edition in sheet.editions],
        "dossier": asdict(sheet.dossier) if sheet.dossier else None,
        "edges": [asdict(neighbour.edge) for neighbour in sheet.neighbours],
    }


def _way(way: Way) -> dict[str, Any]:
    steps = [
        {"to": step.to.id, "name": step.to.name, "along": step.along, "edge": asdict(step.edge)} for step in way.steps
    ]
    return {"weakest": way.weakest, "steps": steps}
