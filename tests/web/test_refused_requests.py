from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO
from typing import Any

import aiohttp
import orjson
import pytest

from fakes.asking import HELLO, JSON, post
from fakes.platform import platform

BAD_BODIES: list[tuple[Any, int, str | None]] = [
    (b"", 400, None),
    (b"{", 400, None),
    (b"[]", 400, None),
    (b"\xff\xfe", 400, None),
    (b"[" * 100_000, 400, None),
    (b'{"messages":[{"role":"user","content":"\\ud800"}]}', 400, None),
    ({}, 400, "messages"),
    ({"messages": []}, 400, "messages"),
    ({"messages": "hi"}, 400, "messages"),
    ({"messages": ["hi"]}, 400, "messages[0]"),
    ({"messages": [{"content": "hi"}]}, 400, "messages[0].role"),
    ({"messages": [{"role": "wizard", "content": "hi"}]}, 400, "messages[0].role"),
    ({"messages": [{"role": ["user"], "content": "hi"}]}, 400, "messages[0].role"),
    ({"messages": [*HELLO["messages"], {"role": "user", "content": 7}]}, 400, "messages[1].content"),
    ({"messages": [{"role": "user", "content": ["hi"]}]}, 400, "messages[0].content"),
    (HELLO | {"model": 7}, 400, "model"),
    (HELLO | {"model": "gpt-99"}, 404, "model"),
    (HELLO | {"stream": "yes"}, 400, "stream"),
    (HELLO | {"stream_options": []}, 400, "stream_options"),
    (HELLO | {"stream_options": {"include_usage": 1}}, 400, "stream_options.include_usage"),
    (HELLO | {"n": 2}, 400, "n"),
    (HELLO | {"n": [1]}, 400, "n"),
    (HELLO | {"logprobs": True}, 400, "logprobs"),
    (HELLO | {"casemate": True}, 400, "casemate"),
    (HELLO | {"casemate": {"ground": "yes"}}, 400, "casemate.ground"),
    (HELLO | {"casemate": {"grund": True}}, 400, "casemate"),
    (b'{"messages":[{"role":"user","content":"hi"}],"x":' + b"[" * 900 + b"]" * 900 + b"}", 400, None),
    (b'{"messages":[{"role":"user","content":"hi"}],"x":' + b'{"a":' * 900 + b"1" + b"}" * 901, 400, None),
]


async def test_every_wrong_body_gets_an_error_object_that_names_the_field() -> None:
    async with platform() as address:
        for body, status, param in BAD_BODIES:
            got, answer, _ = await post(address, body)
            error = answer["error"]
            assert (got, error["param"]) == (status, param), body
            assert error["message"]
            assert error["type"] == "invalid_request_error"
        assert (await post(address, HELLO))[0] == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""])
async def test_another_content_type_is_refused(kind: str) -> None:
    async with platform() as address:
        status, answer, _ = await post(address, HELLO, {"Content-Type": kind})
    assert (status, answer["error"]["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/chat/completions", 405),
        ("POST", "/v1/models", 405),
        ("GET", "/v1/engines", 404),
        ("GET", "/v1", 404),
    ],
)
async def test_wrong_methods_and_addresses_get_error_objects(method: str, path: str, status: int) -> None:
    async with (
        platform() as address,
        aiohttp.ClientSession() as session,
        session.request(method, address + path) as response,
    ):
        assert response.status == status
        assert ("Allow" in response.headers) == (status == 405)
        assert (await response.json())["error"]["message"]


async def test_a_body_of_50_mb_is_refused_without_being_held() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b"x" * (1 << 20)

    async with platform() as address, aiohttp.ClientSession() as session:
        for body in (BytesIO(b"x" * (50 << 20)), pieces()):  # with a length, and without one
            async with session.post(f"{address}/v1/chat/completions", data=body, headers=JSON) as response:
                assert response.status == 413
                assert (await response.json())["error"]["code"] == "request_too_large"


@pytest.mark.parametrize("length", [b"99999999999", b"-1", b"x", b"0"])
async def test_a_content_length_that_lies_gets_no_answer_to_trust(length: bytes) -> None:
    async with platform() as address:
        reader, writer = await asyncio.open_connection(*address.removeprefix("http://").split(":"))
        head = (
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
            % address[7:].encode()
        )
        writer.write(head + b"Content-Length: " + length + b"\r\n\r\n" + orjson.dumps(HELLO))
        status_line = await asyncio.wait_for(reader.readline(), 10)
        writer.close()
        assert status_line.split()[1] in {b"400", b"413"}
        assert (await post(address, HELLO))[0] == 200
