"""The web roof: one ASGI application out of the parts, and the server that runs it."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from ipaddress import ip_address
from typing import Any

import uvicorn

from casemate.engine.interface import Starting
from casemate.errors import PlatformError
from casemate.report.visible import visible
from casemate.web.console import console
from casemate.web.guard import guarded
from casemate.web.openai import OpenAI
from casemate.web.replies import App, Message, Receive, Refused, Scope, Send, send_json, send_refusal
from casemate.web.services import Services

_log = logging.getLogger("casemate.web")
_GRACE_S = 3.0
"""How long running answers may go on after the end was asked for. With the two that follow, the end stays under 5 s."""
_CANCEL_S = 0.5
"""How long cancelled requests may take to clean up."""
_FLUSH_S = 0.5
"""How long what was written may still be on its way to a slow reader, before its connection is cut."""
_BACKLOG = 512


def application(services: Services) -> App:
    """The whole web application.

    `/`, `/report` and `/graph…` are pages, `/v1/…` is the OpenAI API, `/healthz` says that this process lives,
    `/readyz` that the engine made a real token.
    """
    pages, api = console(services), OpenAI(services)

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path == "/healthz":
            await send_json(send, {"status": "alive"})
        elif path == "/readyz":
            await _readiness(services, send)
        elif path == "/v1" or path.startswith("/v1/"):
            await api(scope, receive, send)
        else:
            await pages(scope, receive, send)

    return guarded(_edge(route))


@asynccontextmanager
async def serving(app: App, *, host: str, port: int) -> AsyncGenerator[str, None]:
    """Serve for the length of the block; then take no more requests, let running ones end, and be gone within 5 s.

    The block gets the address (`http://127.0.0.1:8642`) when it answers. Signals are the caller's affair.

    Args:
        app: an ASGI application.
        host: a loopback address.
        port: 0 picks a free one.

    Raises:
        PlatformError: the address is not loopback, or the port is taken.
    """
    listener = _listen(host, port)
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{listener.getsockname()[1]}"
    requests = _Requests(app)
    config = uvicorn.Config(
        requests,
        loop="none",
        lifespan="off",
        log_config=None,
        log_level=logging.CRITICAL,  # what it would say of a request, the edge has said
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )
    server = _Server(config)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield address
    finally:
        server.should_exit = True
        await requests.end()
        await asyncio.wait((running,), timeout=_FLUSH_S)
        server.cut()
        await running


class _Requests:
    """An application that knows its running requests, so that the end can wait for them, and then for their ends."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._running: set[asyncio.Task[Any]] = set()
        self._ending = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._ending:
            return await guarded(self._late)(scope, receive, send)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine that runs has one
        self._running.add(task)
        try:
            await self._app(scope, receive, send)
        finally:
            self._running.discard(task)

    async def end(self) -> None:
        """Take no more; give the running requests their grace, then cancel them."""
        self._ending = True
        for wait_s in (_GRACE_S, _CANCEL_S):
            if self._running:
                _, late = await asyncio.wait(self._running, timeout=wait_s)
                for task in late:
                    task.cancel()

    async def _late(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        headers = [(b"connection", b"close"), (b"retry-after", b"5")]
        await send_refusal(send, Refused(503, "the platform is ending", code="ending", headers=headers))


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone: the roof that runs supervisor and server in one loop owns them."""
        yield

    def cut(self) -> None:
        """Wait for nobody any more: neither for readers that do not read nor for requests that ignore their end."""
        self.force_exit = True
        for connection in tuple(self.server_state.connections):
            connection.transport.abort()


def _listen(host: str, port: int) -> socket.socket:
    try:
        loopback = ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError as error:
        raise PlatformError("the host is no address", where=host, remedy="use 127.0.0.1") from error
    if not loopback.is_loopback:
        raise PlatformError("only loopback addresses are served", where=host, remedy="use 127.0.0.1 or ::1")
    listener = socket.socket(socket.AF_INET6 if loopback.version == 6 else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((str(loopback), port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        taken = error.errno == errno.EADDRINUSE
        what = "the port is taken" if taken else f"cannot listen: {error.strerror}"
        remedy = "stop what runs there, or set CASEMATE_PORT to another (0 picks a free one)"
        raise PlatformError(what, where=f"{host}:{port}", remedy=remedy) from error
    listener.setblocking(False)  # noqa: FBT003 - the socket's own signature
    return listener


async def _readiness(services: Services, send: Send) -> None:
    state = services.ready()
    if isinstance(state, Starting):
        value = {"status": "starting", "phase": state.phase, "share": state.share}
        await send_json(send, value, status=503, headers=[(b"retry-after", b"5")])
    else:
        await send_json(send, {"status": "ready", "model": services.model_name})


def _edge(app: App) -> App:
    """The one place where an unexpected failure ends: a line in the log, an error object for the client."""

    async def edge(scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await app(scope, receive, watched)
        except Exception as error:  # noqa: BLE001 - the one edge
            path = visible(scope["path"]).replace("\n", "␊")  # one request is one line
            _log.error("%s %s failed: %r", scope["method"], path, error)
            if started:
                return  # the server cuts a reply that was left open, which tells the client the truth
            await send_refusal(
                send, Refused(500, "an internal error; the server's log has a line", code="internal_error")
            )

    return edge
