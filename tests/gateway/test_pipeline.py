from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace

import pytest

from casemate.chat.scripted import ScriptedModel
from casemate.chat.wire import ChatRequest, Citation, Delta, Message, Passage
from casemate.errors import ModelError
from casemate.gateway.pipeline import Cited, closing

QUESTION = ChatRequest(messages=(Message("user", "What is CWE-89?"),))
PASSAGE = Passage(node="CWE-89", title="SQL Injection", text="…", source="CWE", version="4.14")


class Checker:
    """Grades what it is given by a table."""

    def check(self, text: str, offered: Sequence[Passage]) -> list[Citation]:
        return [
            Citation(id=one.node, name=one.title, source="CWE", version="4.14", grade="H0", cited=one.node in text)
            for one in offered
        ]


class Endless:
    """A model that talks until somebody stops it, and remembers that."""

    stopped = False

    async def stream(self, _request: ChatRequest) -> AsyncGenerator[Delta, None]:
        try:
            while True:
                yield Delta(content="x")
        finally:
            self.stopped = True


async def test_stopping_the_answer_stops_the_model() -> None:
    model = Endless()
    async with aclosing(Cited(model, Checker()).stream(QUESTION)) as deltas:
        await anext(deltas)
    assert model.stopped


async def test_a_reader_that_fails_stops_the_model() -> None:
    model = Endless()
    with suppress(ZeroDivisionError):
        async with closing(model.stream(QUESTION)) as deltas:
            await anext(deltas)
            raise ZeroDivisionError
    assert model.stopped


async def test_a_cited_answer_keeps_its_text_and_ends_with_one_delta_of_citations() -> None:
    request = replace(QUESTION, passages=(PASSAGE,))
    plain = [delta async for delta in ScriptedModel(["It is CWE-89."]).stream(request)]
    *engine, trailing = [delta async for delta in Cited(ScriptedModel(["It is CWE-89."]), Checker()).stream(request)]
    assert engine == plain
    assert trailing == Delta(citations=(Citation("CWE-89", "SQL Injection", "CWE", "4.14", "H0", cited=True),))


async def test_an_answer_that_broke_off_gets_no_citations() -> None:
    broken = ScriptedModel([[Delta(content="It"), ModelError("gone")]])
    deltas = Cited(broken, Checker()).stream(QUESTION)
    assert await anext(deltas) == Delta(content="It")
    with pytest.raises(ModelError, match="gone"):
        await anext(deltas)
