"""How a request becomes an answer: steps change the request, the model streams, a checker has the last word."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from casemate.chat.model import ChatModel
from casemate.chat.wire import ChatRequest, Citation, Delta, Passage

Step = Callable[[ChatRequest], Awaitable[ChatRequest]]
"""Gives back the request, changed or not. What the client should know of it goes into `notes`."""


class Checker(Protocol):
    """Knows which identifiers exist. Called in a thread: it may block, and must allow several threads at once."""

    def check(self, text: str, offered: Sequence[Passage]) -> list[Citation]:
        """The identifiers that `text` names or `offered` brought, each graded."""
        ...


async def prepare(request: ChatRequest, steps: Sequence[Step]) -> ChatRequest:
    """The request after every step, in their order."""
    for step in steps:
        request = await step(request)
    return request


@dataclass(frozen=True, slots=True)
class Cited:
    """A ChatModel whose answers end with one further Delta: the checked citations. The text stays as it came."""

    model: ChatModel
    checker: Checker

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Delta, None]:
        """The model's Deltas, then one that carries `citations`; none after an answer that broke off."""
        said: list[str] = []
        async with closing(self.model.stream(request)) as deltas:
            async for delta in deltas:
                said.append(delta.content)
                yield delta
        citations = await to_thread(self.checker.check, "".join(said), request.passages)
        yield Delta(citations=tuple(citations))


@asynccontextmanager
async def closing(deltas: AsyncIterator[Delta]) -> AsyncGenerator[AsyncIterator[Delta], None]:
    """Close the iterator at the end of the block, if it can be closed: the port does not ask for a generator."""
    try:
        yield deltas
    finally:
        if isinstance(deltas, AsyncGenerator):
            await deltas.aclose()
