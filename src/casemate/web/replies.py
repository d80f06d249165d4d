"""Replies in ASGI: JSON, OpenAI error objects, and the refusal that becomes one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from casemate.errors import CasemateError, ModelError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and the way back: ASGI's three, as one value."""

    scope: Scope
    receive: Receive
    send: Send


_PASSED_ON = frozenset({400, 413, 422, 429, 503})
"""What an engine says of the request itself, or of its load; everything else is between the engine and us."""


class Refused(Exception):  # noqa: N818 - a reply, not a fault
    """A request that gets an error object instead of an answer.

    Args:
        status: the HTTP status.
        message: a sentence for the client: what, and the remedy.
        code: the word that programs look at.
        param: the field of the body that it concerns; empty if none.
        headers: further headers of the reply.
    """

    def __init__(
        self, status: int, message: str, *, code: str = "", param: str = "", headers: Sequence[Header] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.headers = tuple(headers)


def refusal(error: CasemateError, retry_after_s: int) -> Refused:
    """The reply that an expected failure gets.

    Args:
        error: what failed.
        retry_after_s: when to come back, told where that would help.
    """
    if not isinstance(error, ModelError):
        return Refused(500, str(error), code="internal_error")
    status = error.status if error.status in _PASSED_ON else 502
    codes = {429: "rate_limit_exceeded", 503: "overloaded", 502: "upstream_error"}
    headers = [(b"retry-after", b"%d" % retry_after_s)] if status in {429, 503} else []
    return Refused(status, str(error), code=codes.get(status, "invalid_request"), headers=headers)


def error_object(refused: Refused) -> dict[str, Any]:
    """The OpenAI error object."""
    kinds = {429: "rate_limit_error", 403: "permission_error"}
    kind = kinds.get(refused.status, "invalid_request_error" if refused.status < 500 else "server_error")
    error = {"message": refused.message, "type": kind, "param": refused.param or None, "code": refused.code or None}
    return {"error": error}


async def send_refusal(send: Send, refused: Refused) -> None:
    """Reply with the error object."""
    await send_json(send, error_object(refused), status=refused.status, headers=refused.headers)


async def send_json(send: Send, value: Any, *, status: int = 200, headers: Sequence[Header] = ()) -> None:
    """Reply with a JSON value."""
    body = orjson.dumps(value)
    fixed = ((b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": [*fixed, *headers]})
    await send({"type": "http.response.body", "body": body})
