"""Asking the web application over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson

from fakes.platform import MODEL

HELLO = {"model": MODEL, "messages": [{"role": "user", "content": "Say hello."}]}
JSON = {"Content-Type": "application/json"}
GROUNDED = {"casemate": {"ground": True}}


async def post(address: str, body: Any, headers: dict[str, str] = JSON) -> tuple[int, dict[str, Any], Any]:
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{address}/v1/chat/completions", data=data, headers=headers) as response,
    ):
        return response.status, await response.json(), response.headers


@asynccontextmanager
async def streaming(address: str) -> AsyncIterator[aiohttp.ClientResponse]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{address}/v1/chat/completions", json=HELLO | {"stream": True}) as response,
    ):
        yield response
