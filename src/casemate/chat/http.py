"""A ChatModel behind an OpenAI-compatible address."""

from __future__ import annotations

import errno
import socket
from asyncio import timeout
from collections.abc import AsyncGenerator
from contextlib import aclosing
from io import BytesIO
from typing import Self

import aiohttp

from casemate.chat import chunks
from casemate.chat.address import hands_out_credentials
from casemate.chat.model import Endpoint
from casemate.chat.wire import ChatRequest, Delta
from casemate.errors import ModelError, UsageError

OUT_OF_REACH = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""The cause of a ModelError where nobody took the connection: refused, unknown, or no answer to it."""

_CONNECT_S = 5.0
_SILENCE_S = 900.0
"""The longest pause that is still thought to be a prefill and no death."""
_IDLE_S = 4.0
"""Engines drop an idle connection after 5 s; one that we let go of first cannot fail under a request."""
_SETTLE_S = 0.25
_REFUSAL_BYTES = 64 << 10
_WHOLE_BYTES = 16 << 20


class HttpModel:
    """Streams answers from one endpoint. Use as `async with HttpModel(endpoint) as model`.

    One pool of connections, no cookies, no proxy from the environment, no redirects, and no connection to a link-local
    address, whatever its name meant when somebody looked. The only key that travels is the one given here. A request is
    sent again once, if a kept connection proves dead before a byte was answered.

    Args:
        endpoint: where the model answers.
        key: bearer token for it; empty sends none.

    Raises:
        UsageError: the key cannot be put in a header.
    """

    def __init__(self, endpoint: Endpoint, *, key: str = "") -> None:
        if not key.isprintable() or not key.isascii():
            raise UsageError("the key of the endpoint holds characters that no header can carry", where=endpoint.url)
        self._endpoint = endpoint
        self._key = key
        self._address = endpoint.url.rstrip("/") + "/v1/chat/completions"
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"HttpModel({self._endpoint.url!r}, model={self._endpoint.model!r}, key={'***' if self._key else ''!r})"

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            headers={"Accept": "text/event-stream"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {}),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=_SILENCE_S),
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_S, socket_factory=safe_socket),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session:
            await self._session.close()
            self._session = None

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Delta, None]:
        """Answer in increments; closing the iterator closes the connection at once, which stops the engine.

        Raises:
            ModelError: the endpoint refused, broke off, or answered nonsense.
        """
        response = await self._answer(chunks.body(request, self._endpoint.model))
        try:
            await self._refuse(response)
            if response.content_type == "text/event-stream":
                async with aclosing(self._read(response)) as deltas:
                    async for delta in deltas:
                        yield delta
                await _settle(response)
            else:
                for delta in chunks.whole(await _limited(response, _WHOLE_BYTES)):
                    yield delta
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._broken(error) from error
        finally:
            response.close()

    async def _answer(self, body: bytes) -> aiohttp.ClientResponse:
        try:
            try:
                return await self._post(body)
            except aiohttp.ClientConnectorError:
                raise
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                return await self._post(body)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._broken(error) from error

    async def _post(self, body: bytes) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("enter the HttpModel before you stream from it")
        headers = {"Content-Type": "application/json"}
        # A file-like body is sent in pieces, a long one in one piece would hold up every other stream.
        return await self._session.post(self._address, data=BytesIO(body), headers=headers, allow_redirects=False)

    async def _refuse(self, response: aiohttp.ClientResponse) -> None:
        """Raise unless the endpoint agreed to answer, and in a form that we read."""
        if response.status != 200:
            said = chunks.refusal(await _limited(response, _REFUSAL_BYTES)) or response.reason or "no reason given"
            if 300 <= response.status < 400:
                said = "redirects are not followed"
            raise ModelError(
                f"the endpoint answered {response.status}: {self._masked(said)}",
                status=response.status,
                where=self._endpoint.url,
            )
        if response.content_type not in {"text/event-stream", "application/json"}:
            raise ModelError(
                f"the endpoint answered {response.content_type}, not a chat completion",
                where=self._endpoint.url,
                remedy="is this the address of an OpenAI-compatible server?",
            )

    async def _read(self, response: aiohttp.ClientResponse) -> AsyncGenerator[Delta, None]:
        reader = chunks.AnswerReader()
        cut: Exception | None = None
        try:
            async for data in response.content.iter_any():
                for delta in reader.feed(data):
                    yield delta
                if reader.done:
                    return
        except (aiohttp.ClientError, TimeoutError) as error:
            cut = error
        for delta in reader.close():
            yield delta
        if not reader.finished:
            raise self._broken(cut) from cut

    def _broken(self, cause: Exception | None) -> ModelError:
        if isinstance(cause, OUT_OF_REACH):
            why = getattr(cause, "strerror", None) or f"no connection within {_CONNECT_S:g} s"
            what = f"the endpoint cannot be reached, {why}"
            return ModelError(what, where=self._endpoint.url, remedy="is the server running?")
        reason = f": {type(cause).__name__}" if cause else ""
        return ModelError(f"the endpoint broke off before the answer was whole{reason}", where=self._endpoint.url)

    def _masked(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text


def safe_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """The socket for one connection, for aiohttp: the last look at where it really goes.

    Raises:
        PermissionError: to a link-local address, or a cloud's metadata service.
    """
    family, kind, protocol, _, (host, *_) = address
    if hands_out_credentials(str(host)):
        raise PermissionError(errno.EACCES, f"{host} is link-local and may hand out a cloud's credentials")
    return socket.socket(family, kind, protocol)


async def _limited(response: aiohttp.ClientResponse, limit_bytes: int) -> bytes:
    """The body, up to a limit: what is longer is cut, and then is no JSON any more."""
    parts: list[bytes] = []
    async for data in response.content.iter_any():
        parts.append(data)
        if sum(map(len, parts)) >= limit_bytes:
            break
    return b"".join(parts)[:limit_bytes]


async def _settle(response: aiohttp.ClientResponse) -> None:
    """Read the end of the body, so that the connection can be used again; a body without an end is left to `close`."""
    try:
        while not response.content.at_eof():
            async with timeout(_SETTLE_S):
                await response.content.readany()
    except (aiohttp.ClientError, TimeoutError):
        return
    response.release()
