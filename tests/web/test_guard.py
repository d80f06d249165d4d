from __future__ import annotations

import orjson
import pytest

from casemate.web.guard import guarded
from casemate.web.replies import Message, Receive, Scope, Send

PORT = 8642


async def reached(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


async def knock(*headers: tuple[str, str], kind: str = "http") -> list[Message]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request"}

    raw = [(name.lower().encode(), value.encode()) for name, value in headers]
    scope = {"type": kind, "scheme": "http", "path": "/", "headers": raw, "server": ("127.0.0.1", PORT)}
    await guarded(reached)(scope, receive, send)
    return sent


async def status(*headers: tuple[str, str]) -> int:
    return int((await knock(*headers))[0]["status"])


OURS = ("Host", f"127.0.0.1:{PORT}")


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
async def test_loopback_names_with_our_port_are_served(name: str) -> None:
    assert await status(("Host", f"{name}:{PORT}")) == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        f"127.0.0.1.evil.example:{PORT}",
        f"localhost.evil.example:{PORT}",
        f"evil.example@127.0.0.1:{PORT}",
        f"127.0.0.1:{PORT}.evil.example",
        f"127.0.0.1:{PORT}:{PORT}",
        f"0.0.0.0:{PORT}",
        f"[::1]evil:{PORT}",
        "127.0.0.1",
        "127.0.0.1:1",
        f"localhost.:{PORT}",
        "",
        ":8642",
    ],
)
async def test_every_other_host_is_refused(host: str) -> None:
    assert await status(("Host", host)) == 403


async def test_no_host_or_two_are_refused() -> None:
    assert await status() == 403
    assert await status(OURS, ("Host", "evil.example")) == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", f"https://127.0.0.1:{PORT}", "http://127.0.0.1:1"]
)
async def test_other_origins_are_refused(origin: str) -> None:
    assert await status(OURS, ("Origin", origin)) == 403


async def test_our_own_origin_is_served() -> None:
    assert await status(OURS, ("Origin", f"http://127.0.0.1:{PORT}")) == 200
    assert await status(OURS, ("Origin", f"http://127.0.0.1:{PORT}"), ("Origin", "http://evil.example")) == 403


async def test_headers_beyond_all_measure_are_refused() -> None:
    assert await status(OURS, ("X-Long", "x" * 33000)) == 431


@pytest.mark.parametrize("headers", [(OURS,), (("Host", "evil.example"),)])
async def test_every_reply_carries_the_security_headers_and_none_of_cors(headers: tuple[tuple[str, str], ...]) -> None:
    sent = dict((await knock(*headers))[0]["headers"])
    policy = sent[b"content-security-policy"].decode()
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert sent[b"x-content-type-options"] == b"nosniff"
    assert sent[b"referrer-policy"] == b"no-referrer"
    assert sent[b"x-frame-options"] == b"DENY"
    assert sent[b"cache-control"] == b"no-store"
    assert not [name for name in sent if name.startswith(b"access-control")]


async def test_a_refusal_is_an_openai_error_object() -> None:
    start, body = await knock(("Host", "evil.example"))
    assert start["status"] == 403
    error = orjson.loads(body["body"])["error"]
    assert error["code"] == "host_not_allowed"
    assert set(error) == {"message", "type", "param", "code"}


async def test_websockets_are_closed() -> None:
    assert (await knock(OURS, kind="websocket"))[0]["type"] == "websocket.close"
