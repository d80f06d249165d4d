"""Runs an engine for the length of a block, and owns the end of what it started.

    async with supervisor.running(engine, plan) as endpoint:
        ...  # the engine has made a real token; if it dies, this block is cancelled and EngineDied raised
    # nothing of it lives, its port is free

The promise after the block holds for every way out: end, exception, cancellation, SIGINT, SIGTERM, and for `kill -9`
of this very process (`engine.keeper`).
"""

from __future__ import annotations

import asyncio
import math
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from casemate.chat.http import OUT_OF_REACH, HttpModel, safe_socket
from casemate.chat.model import Endpoint
from casemate.chat.wire import ChatRequest, Message
from casemate.engine.child import Child
from casemate.engine.interface import Engine, Ready, Starting
from casemate.engine.remote import refuse_link_local
from casemate.errors import EngineDied, EngineError, ModelError
from casemate.plan.decision import CpuPlan

Observer = Callable[[Starting | Ready], None]

_ATTEMPTS = 3
"""A port that was free a moment ago may be taken by the time the engine asks for it."""
_PROBE_EVERY_S = 0.1
_NOT_YET = frozenset({0, 429, 502, 503, 504})
"""What an endpoint says that may still come up; 0 is no HTTP answer at all."""
_ONE_TOKEN = ChatRequest(messages=(Message("user", "Hi"),), options={"max_tokens": 1, "temperature": 0})
_DOOR_S = 30.0
_PORT_TAKEN = ("address already in use", "couldn't bind")
_USUAL_HANDLERS: dict[int, Any] = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
_BLAME_S = 0.5
"""A broken connection is seen sooner than the death that broke it."""


def nobody(_: Starting | Ready) -> None:
    """The observer that does not look."""


def free_port() -> int:
    """A loopback port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Terms:
    """How to run an engine.

    `observe` gets every step of the start, `start_s` is how long it may take, `reach_s` how long somebody else's server
    may be out of reach meanwhile, `grace_s` what a process gets between SIGTERM and SIGKILL, `pick_port` where a port
    comes from.
    """

    observe: Observer = nobody
    start_s: float = 600.0
    reach_s: float = 5.0
    grace_s: float = 10.0
    pick_port: Callable[[], int] = free_port


USUAL = Terms()


@asynccontextmanager
async def running(engine: Engine, plan: CpuPlan, *, terms: Terms = USUAL) -> AsyncIterator[Endpoint]:
    """Run the engine for this plan; see the module.

    SIGTERM and SIGINT, where nobody else handles them, cancel the block and leave it as SystemExit(143) and
    KeyboardInterrupt after everything has ended.

    Raises:
        EngineDied: its process ended, at the start or under the block.
        EngineError: it did not become ready in time, or answers in a way that it must not.
    """
    with _signals_cancel():
        async with _ready(engine, plan, terms=terms) as (endpoint, child):
            terms.observe(Ready())
            if child is None:
                yield endpoint
            else:
                async with _dying_with(child, endpoint):
                    yield endpoint


@asynccontextmanager
async def _ready(engine: Engine, plan: CpuPlan, *, terms: Terms) -> AsyncIterator[tuple[Endpoint, Child | None]]:
    """The engine, ready; a start that lost its port to somebody else is tried again on another."""
    for attempts_left in reversed(range(_ATTEMPTS)):
        port = terms.pick_port()
        endpoint = engine.endpoint(plan, port)
        launch = engine.launch(plan, port)
        terms.observe(Starting("start"))
        if launch is None:
            await refuse_link_local(endpoint.url)
            await _until_ready(engine, endpoint, terms=terms)
            yield endpoint, None
            return
        async with Child(launch, on_line=_reporter(engine, terms), grace_s=terms.grace_s) as child:
            try:
                await _until_ready(engine, endpoint, terms=terms, child=child)
            except EngineDied as death:
                lost = death
            else:
                yield endpoint, child
                return
        if not attempts_left or not _port_was_taken(port, lost.tail):
            raise lost


def _reporter(engine: Engine, terms: Terms) -> Callable[[str], None]:
    def report(line: str) -> None:
        if starting := engine.phase(line):
            terms.observe(starting)

    return report


async def _until_ready(engine: Engine, endpoint: Endpoint, *, terms: Terms, child: Child | None = None) -> None:
    """Watch for the first token, the child's death and the deadline together."""
    reach_s = math.inf if child else terms.reach_s  # our own process opens its port when it is ready
    token = asyncio.ensure_future(_first_token(endpoint, engine.key, reach_s=reach_s))
    death = asyncio.ensure_future(child.ended() if child else asyncio.Event().wait())
    try:
        await asyncio.wait({token, death}, timeout=terms.start_s, return_when=asyncio.FIRST_COMPLETED)
        if child and death.done():
            raise _died(child, endpoint)
        if not token.done():
            remedy = f"its last line was {child.tail[-1]!r}" if child and child.tail else "is this its address?"
            raise EngineError(f"the engine was not ready after {terms.start_s:g} s", where=endpoint.url, remedy=remedy)
        token.result()
    finally:
        token.cancel()
        death.cancel()
        await asyncio.gather(token, death, return_exceptions=True)


async def _first_token(endpoint: Endpoint, key: str, *, reach_s: float) -> None:
    reached_s = time.monotonic()
    async with HttpModel(endpoint, key=key) as model:
        while True:
            try:
                if await _made_token(model):
                    break
            except ModelError as error:
                now_s = time.monotonic()
                reached_s = reached_s if isinstance(error.__cause__, OUT_OF_REACH) else now_s
                if error.status not in _NOT_YET or now_s - reached_s >= reach_s:
                    raise EngineError(error.what, where=error.where, remedy=error.remedy) from error
            await asyncio.sleep(_PROBE_EVERY_S)
    if key:
        await _refuse_open_door(endpoint)


async def _made_token(model: HttpModel) -> bool:
    deltas = [delta async for delta in model.stream(_ONE_TOKEN)]
    return any(delta.content or delta.reasoning or (delta.usage and delta.usage.completion_tokens) for delta in deltas)


async def _refuse_open_door(endpoint: Endpoint) -> None:
    """An engine that was given a key must not serve without it."""
    address = f"{endpoint.url}/v1/models"
    timeout = aiohttp.ClientTimeout(total=_DOOR_S)
    connector = aiohttp.TCPConnector(socket_factory=safe_socket)
    async with (
        aiohttp.ClientSession(timeout=timeout, connector=connector) as session,
        session.get(address, allow_redirects=False) as answer,
    ):
        if answer.status not in {401, 403}:
            raise EngineError(f"the engine answers {answer.status} without its key", where=address)


@asynccontextmanager
async def _dying_with(child: Child, endpoint: Endpoint) -> AsyncIterator[None]:
    """Cancel the block when the child ends, and say why. Like `asyncio.timeout`, with a death for the deadline."""
    body = _this_task()
    cancelled_before = body.cancelling()
    death = asyncio.ensure_future(child.ended())
    death.add_done_callback(lambda _: inside and body.cancel())
    inside = True
    try:
        try:
            yield
        except (ModelError, aiohttp.ClientError):
            await asyncio.wait({death}, timeout=_BLAME_S)  # cancelled, if the death is the cause
            raise
    except asyncio.CancelledError:
        if not death.done() or body.uncancel() > cancelled_before:
            raise
        raise _died(child, endpoint) from None
    finally:
        inside = False
        death.cancel()


@contextmanager
def _signals_cancel() -> Iterator[None]:
    """Make SIGTERM and SIGINT end the block in order; handlers that others have set (uvicorn, asyncio) stay."""
    body, loop = _this_task(), asyncio.get_running_loop()
    seen: list[int] = []

    def cancel(number: int, _: object) -> None:
        seen.append(number)
        loop.call_soon_threadsafe(body.cancel)

    unhandled = [number for number, usual in _USUAL_HANDLERS.items() if signal.getsignal(number) is usual]
    if threading.current_thread() is not threading.main_thread():
        unhandled = []
    for number in unhandled:
        signal.signal(number, cancel)
    try:
        yield
    except asyncio.CancelledError:
        if not seen:
            raise
    finally:
        for number in unhandled:
            signal.signal(number, _USUAL_HANDLERS[number])
    if seen:
        body.uncancel()
        raise KeyboardInterrupt if seen[0] == signal.SIGINT else SystemExit(128 + seen[0])


def _this_task() -> asyncio.Task[object]:
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("an engine runs under a task")
    return task


def _died(child: Child, endpoint: Endpoint) -> EngineDied:
    code = child.code
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"status {code}"
    return EngineDied(f"the engine's process ended with {how}", exit_code=code, tail=child.tail, where=endpoint.url)


def _port_was_taken(port: int, tail: tuple[str, ...]) -> bool:
    """Whether somebody else has it now (nothing of ours lives), or the engine found it so."""
    if any(phrase in line.lower() for line in tail for phrase in _PORT_TAKEN):
        return True
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
