"""The web application on a free loopback port, over a scripted model unless the test brings another."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from casemate.chat.model import ChatModel
from casemate.chat.scripted import Script, ScriptedModel
from casemate.chat.wire import ChatRequest, Citation, Delta, Passage
from casemate.engine.interface import Ready
from casemate.gateway.admission import Admission
from casemate.gateway.grounding import grounding
from casemate.web.app import application, serving
from casemate.web.services import Services

MODEL = "qwen2.5-coder-1.5b"
PASSAGES = (
    Passage("CWE-89", "SQL Injection", "Special elements of SQL are not neutralised.", "CWE", "4.14"),
    Passage("CWE-564", "SQL Injection: Hibernate", "Hibernate builds SQL from input.", "CWE", "4.14"),
)


class Shelf:
    """A retriever with two books."""

    def search(self, _text: str, limit: int) -> list[Passage]:
        return list(PASSAGES[:limit])


class Checker:
    """Knows the two books, and that every other CWE is made up."""

    def check(self, text: str, offered: Sequence[Passage]) -> list[Citation]:
        named = list(dict.fromkeys(re.findall(r"CWE-\d+", text)))
        known = {one.node: one.title for one in PASSAGES}
        cited = [
            Citation(one, known.get(one, ""), "CWE", "4.14", "H0" if one in known else "H2", cited=True)
            for one in named
        ]
        quiet = [
            Citation(one.node, one.title, one.source, one.version, "H0", cited=False)
            for one in offered
            if one.node not in named
        ]
        return cited + quiet


@dataclass
class Waiting:
    """A model that says one word and then nothing, until it is stopped."""

    first: bool = True

    def __post_init__(self) -> None:
        self.asked = asyncio.Event()
        self.stopped = asyncio.Event()

    async def stream(self, _request: ChatRequest) -> AsyncGenerator[Delta, None]:
        self.asked.set()
        try:
            if self.first:
                yield Delta(content="wait")
            await asyncio.Event().wait()
        finally:
            self.stopped.set()


def services(model: ChatModel | Script = ("Hello there.",) * 9) -> Services:
    """Services over a model, or over a script for one."""
    return Services(
        model=model if hasattr(model, "stream") else ScriptedModel(model),
        model_name=MODEL,
        ready=Ready,
        admission=Admission(slots=2, queue=4),
        grounding=grounding(Shelf()),
        checker=Checker(),
        context=4096,
    )


@asynccontextmanager
async def platform(given: Services | None = None, **changes: Any) -> AsyncIterator[str]:
    """Its address, for the length of the block; `changes` are fields of Services."""
    parts = replace(given or services(), **changes)
    async with serving(application(parts), host="127.0.0.1", port=0) as address:
        yield address
