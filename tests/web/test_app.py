from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, suppress
from typing import Any

import aiohttp
import pytest

from casemate.chat.wire import ChatRequest, Delta
from casemate.engine.interface import Ready, Starting
from casemate.errors import PlatformError
from casemate.web.app import application, serving
from casemate.web.replies import App, Receive, Scope, Send
from fakes.platform import MODEL, Waiting, platform, services


async def get(address: str) -> tuple[int, dict[str, object]]:
    async with aiohttp.ClientSession() as session, session.get(address) as response:
        return response.status, await response.json()


async def test_alive_is_not_ready() -> None:
    state: list[Ready | Starting] = [Starting("load", 0.25)]
    async with platform(ready=lambda: state[-1]) as address:
        assert await get(f"{address}/healthz") == (200, {"status": "alive"})
        assert await get(f"{address}/readyz") == (503, {"status": "starting", "phase": "load", "share": 0.25})
        state.append(Ready())
        assert await get(f"{address}/readyz") == (200, {"status": "ready", "model": MODEL})


class Faulty:
    """A model with a fault of ours in it."""

    def __init__(self, *first: Delta) -> None:
        self.first = first

    async def stream(self, _request: ChatRequest) -> AsyncGenerator[Delta, None]:
        for delta in self.first:
            yield delta
        raise ZeroDivisionError("a secret detail")


async def test_a_fault_of_ours_is_one_line_in_the_log_and_an_error_object(caplog: pytest.LogCaptureFixture) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}]}
    async with platform(model=Faulty()) as address, aiohttp.ClientSession() as session:
        async with session.post(f"{address}/v1/chat/completions", json=body) as response:
            answer = await response.json()
            assert (response.status, answer["error"]["type"]) == (500, "server_error")
            assert "secret detail" not in str(answer)
        assert await get(f"{address}/healthz") == (200, {"status": "alive"})
    (record,) = caplog.records
    assert record.getMessage() == "POST /v1/chat/completions failed: ZeroDivisionError('a secret detail')"
    assert record.exc_info is None


async def test_a_fault_of_ours_amid_a_stream_cuts_it() -> None:
    body = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
    async with (
        platform(model=Faulty(Delta(content="Hel"))) as address,
        aiohttp.ClientSession() as session,
        session.post(f"{address}/v1/chat/completions", json=body) as response,
    ):
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
async def test_only_loopback_is_served(host: str) -> None:
    with pytest.raises(PlatformError, match=r"127\.0\.0\.1"):
        await serving(application(services()), host=host, port=0).__aenter__()


async def test_a_taken_port_is_named_with_the_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PlatformError, match="CASEMATE_PORT") as caught:
            await serving(application(services()), host="127.0.0.1", port=port).__aenter__()
    assert f"127.0.0.1:{port}" in str(caught.value)
    assert "the port is taken" in str(caught.value)


async def test_serving_ends_when_cancelled_and_frees_the_port() -> None:
    announced: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    app = application(services())

    async def serve() -> None:
        async with serving(app, host="127.0.0.1", port=0) as address:
            announced.set_result(address)
            await asyncio.Event().wait()

    task = asyncio.create_task(serve())
    address = await asyncio.wait_for(announced, 10)
    assert (await get(f"{address}/healthz"))[0] == 200
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with serving(app, host="127.0.0.1", port=int(address.rpartition(":")[2])) as again:
        assert again == address


async def test_an_answer_that_runs_too_long_does_not_hold_up_the_end() -> None:
    model = Waiting()
    body = {"messages": [{"role": "user", "content": "hi"}]}
    async with aiohttp.ClientSession() as session, asyncio.timeout(30):
        async with platform(model=model) as address:
            asking = asyncio.ensure_future(session.post(f"{address}/v1/chat/completions", json=body))
            await model.asked.wait()
        assert model.stopped.is_set()
        await asyncio.wait([asking])
        assert asking.exception() or asking.result().status == 500


async def never(_scope: Scope, _receive: Receive, _send: Send) -> None:
    await asyncio.Event().wait()


async def stubborn(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Goes on for longer than the end may take, whatever it is told."""
    await send({"type": "http.response.start", "status": 200})
    until_s = time.monotonic() + 6
    while time.monotonic() < until_s:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)


async def flood(_scope: Scope, _receive: Receive, send: Send) -> None:
    """More than any buffer holds; the reader of this test does not read."""
    await send({"type": "http.response.start", "status": 200})
    for more in (True, True, False):
        await send({"type": "http.response.body", "body": bytes(16 << 20), "more_body": more})


async def one_flood(_scope: Scope, _receive: Receive, send: Send) -> None:
    """An answer that is complete, and cannot be delivered."""
    await send({"type": "http.response.start", "status": 200})
    await send({"type": "http.response.body", "body": bytes(32 << 20)})


async def end_s(app: App) -> float:
    """How long the end takes while the application has a request, from somebody who does not read the reply."""
    async with serving(app, host="127.0.0.1", port=0) as address:
        _, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]), limit=1024)
        writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        await asyncio.sleep(0.1)
        asked_s = time.monotonic()
    took_s = time.monotonic() - asked_s
    writer.close()
    return took_s


async def test_whatever_still_runs_the_end_comes_within_five_seconds() -> None:
    assert max(await asyncio.gather(*map(end_s, (never, stubborn, flood, one_flood)))) < 5


async def test_a_request_after_the_end_was_asked_for_is_refused_and_not_waited_for() -> None:
    model = Waiting()
    body = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
    async with AsyncExitStack() as stack, aiohttp.ClientSession() as session, asyncio.timeout(30):
        address = await stack.enter_async_context(platform(model=model))
        first = await session.post(f"{address}/v1/chat/completions", json=body)
        ending = asyncio.create_task(stack.aclose())
        asked_s = time.monotonic()
        await asyncio.sleep(0)
        statuses = []
        with suppress(aiohttp.ClientError):  # soon the port is closed
            while True:
                async with session.post(f"{address}/v1/chat/completions", json=body) as late:
                    statuses.append((late.status, late.headers["Connection"], (await late.json())["error"]["code"]))
        await ending
        assert time.monotonic() - asked_s < 5
        first.close()
    assert set(statuses) == {(503, "close", "ending")}


@pytest.mark.parametrize("forged", ["\nGET / failed", "\r", "\x1b[2K", "\u202e", "\u2028"])
async def test_a_path_cannot_write_into_the_log_what_it_likes(forged: str, caplog: pytest.LogCaptureFixture) -> None:
    async def faulty(*_: object) -> Any:
        raise ZeroDivisionError

    ours = {"server": ("127.0.0.1", 80), "headers": [(b"host", b"127.0.0.1")]}
    scope = {"type": "http", "method": "GET", "path": f"/v1/{forged}", **ours}
    await application(services())(scope, faulty, faulty)
    (record,) = caplog.records
    assert record.getMessage().isprintable()


async def test_ipv6_loopback_is_served_where_the_machine_has_it() -> None:
    async with serving(application(services()), host="::1", port=0) as address:
        assert (await get(f"{address}/healthz"))[0] == 200
