"""Long replies: a body that grows, kept alive while nothing comes, ended when the client goes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any, Self

from casemate.gateway import sse
from casemate.web.replies import Header, Receive, Send


class EventStream:
    """A reply of server-sent events. Its status goes out with the first write, so until then it may still be refused.

    Use as `async with EventStream(…) as events`; leaving the block without an exception ends the body.

    Args:
        send: the ASGI channel.
        headers: further headers of the reply.
        keep_alive_s: after so long a silence a comment is written.
    """

    def __init__(self, send: Send, headers: Sequence[Header], *, keep_alive_s: float) -> None:
        self._send = send
        self._headers = headers
        self._keep_alive_s = keep_alive_s
        self._written = 0
        self.started = False

    async def __aenter__(self) -> Self:
        self._watch = asyncio.create_task(self._keep_alive())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._watch.cancel()
        with suppress(asyncio.CancelledError):
            await self._watch
        if kind is None:
            await self._send({"type": "http.response.body", "body": b""})

    async def write(self, data: bytes) -> None:
        """Send some events."""
        self._written += 1
        if not self.started:
            self.started = True
            fixed = ((b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no"))
            await self._send({"type": "http.response.start", "status": 200, "headers": [*fixed, *self._headers]})
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def _keep_alive(self) -> None:
        while True:
            before = self._written
            await asyncio.sleep(self._keep_alive_s)
            if self._written == before:
                await self.write(sse.KEEP_ALIVE)


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Do the work, or cancel it as soon as the client goes away."""
    task = asyncio.create_task(work)
    watch = asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait((task, watch), return_when=asyncio.FIRST_COMPLETED)
    finally:
        task.cancel()
        watch.cancel()
        await asyncio.wait((task, watch))
    if not task.cancelled():
        task.result()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
