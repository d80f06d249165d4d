"""What the web needs from the house, handed in by the roof as one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from casemate.chat.model import ChatModel
from casemate.engine.interface import Ready, Starting
from casemate.gateway.admission import Admission
from casemate.gateway.pipeline import Checker, Step
from casemate.web.atlas.lending import Lender, no_graph


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The latest audit: what was audited, its JSON document (as `audit --format json` prints it), its HTML report."""

    title: str
    document: Mapping[str, Any]
    html: str


def no_report() -> AuditReport | None:
    """Nothing was audited yet."""
    return None


@dataclass(frozen=True, slots=True)
class Services:
    """The parts behind the pages and `/v1`.

    `model` answers under the public name `model_name`; `ready` tells the engine's state at this moment; `grounding`
    (None: there is no graph) runs for requests that ask for it, and then `checker` has the last word. `note` is shown
    beside the model's name: a step down, say. `local` is whether the engine runs on this machine; where it does not,
    the page says that questions go to it, and `note` must name it and its address. `report` gives the latest audit at
    each call, in a thread: it may block. `graph` lends the graph to its pages, in threads too.
    """

    model: ChatModel
    model_name: str
    ready: Callable[[], Ready | Starting]
    admission: Admission
    grounding: Step | None = None
    checker: Checker | None = None
    context: int = 0
    note: str = ""
    local: bool = True
    report: Callable[[], AuditReport | None] = no_report
    graph: Lender = no_graph
