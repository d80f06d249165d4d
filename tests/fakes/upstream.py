"""An endpoint on loopback that writes exactly the bytes it is told to, in exactly the pieces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson

EVENT_STREAM = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP answer: its body in pieces, a pause before each, and whether the body has an end.

    `ending` is `whole`, `cut` (the connection closes inside the body) or `hang` (nothing more comes).
    """

    pieces: Sequence[bytes] = ()
    status: int = 200
    kind: str = EVENT_STREAM
    headers: tuple[tuple[str, str], ...] = ()
    pause_s: float = 0.0
    ending: str = "whole"
    silent: bool = False


@dataclass
class Upstream:
    """What the endpoint has seen."""

    reply: Reply = field(default_factory=Reply)
    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    connections: int = 0
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a request has arrived."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the other side closed a connection before its answer was whole."""

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:"))
        self.heads.append(head)
        self.bodies.append(orjson.loads(await reader.readexactly(length)))
        self.asked.set()
        writing = asyncio.create_task(self._write(writer))
        leaving = asyncio.create_task(reader.read(1))
        await asyncio.wait((writing, leaving), return_when=asyncio.FIRST_COMPLETED)
        if leaving.done():
            self.left.set()
            writing.cancel()
            await asyncio.wait((writing,))
            return False
        leaving.cancel()
        await asyncio.wait((leaving,))
        return self.reply.ending == "whole"

    async def _write(self, writer: asyncio.StreamWriter) -> None:
        reply = self.reply
        if reply.silent:
            await asyncio.Event().wait()
        head = [f"HTTP/1.1 {reply.status} Status", f"Content-Type: {reply.kind}", "Transfer-Encoding: chunked"]
        head += [f"{name}: {value}" for name, value in reply.headers]
        writer.write("\r\n".join([*head, "\r\n"]).encode())
        for piece in reply.pieces:
            await asyncio.sleep(reply.pause_s)
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        if reply.ending == "hang":
            await asyncio.Event().wait()
        if reply.ending == "whole":
            writer.write(b"0\r\n\r\n")
        await writer.drain()


@asynccontextmanager
async def upstream(reply: Reply | None = None) -> AsyncIterator[Upstream]:
    """An endpoint for the length of the block."""
    seen = Upstream(reply or Reply())
    server = await asyncio.start_server(seen.accept, "127.0.0.1", 0)
    seen.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        try:
            yield seen
        finally:
            for task in seen.tasks:
                task.cancel()
            await asyncio.gather(*seen.tasks, return_exceptions=True)
