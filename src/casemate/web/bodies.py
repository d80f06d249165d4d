"""From the bytes of a request to a ChatRequest. Nothing of it is trusted."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar, get_args

import orjson

from casemate.chat.wire import ChatRequest, Message, Role
from casemate.web.replies import Receive, Refused, Scope

T = TypeVar("T")

LIMIT_BYTES = 10 << 20
_DISCARD_BYTES = 64 << 20
"""What is read and dropped of a body that is too long, so that its sender lives to read the refusal."""
_BODY_S = 30.0
_ROLES = frozenset(get_args(Role))
_OURS = frozenset({"model", "messages", "stream", "casemate"})
_DEEPEST = 100
"""Levels of JSON within JSON; no schema or tool needs more, and an encoder further on would give up."""


class Gone(Exception):  # noqa: N818 - an event, not a fault
    """The client went away; nobody waits for a reply."""


@dataclass(frozen=True, slots=True)
class Call:
    """A chat completion as asked for: the request, and how the answer shall come."""

    request: ChatRequest
    stream: bool
    include_usage: bool
    ground: bool


async def read_body(scope: Scope, receive: Receive) -> bytes:
    """The whole body.

    Raises:
        Refused: 415 for another type than JSON, 413 over 10 MB (never more is held in memory, whatever Content-Length
            says), 408 if it does not come in 30 s.
        Gone: the client left.
    """
    headers = dict(scope["headers"])
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":
        raise Refused(415, "send the body as JSON: Content-Type: application/json", code="unsupported_media_type")
    declared = headers.get(b"content-length", b"0")
    if declared.isdigit() and int(declared) > _DISCARD_BYTES:
        raise _too_long()
    try:
        async with asyncio.timeout(_BODY_S):
            return await _collected(receive)
    except TimeoutError as error:
        raise Refused(408, "the body did not arrive in 30 s", headers=[(b"connection", b"close")]) from error


def parse(body: bytes, model_name: str) -> Call:
    """Read a chat completion's body.

    Args:
        body: JSON.
        model_name: the one model that is served; a request may leave the name out.

    Raises:
        Refused: 400 with the field that is wrong, 404 for another model.
    """
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Refused(400, f"the body is not JSON: {error}", code="invalid_json") from error
    if not isinstance(fields, dict):
        raise Refused(400, "the body must be a JSON object", code="invalid_json")
    if _is_deeper(fields, _DEEPEST):
        raise Refused(400, f"the body is nested more than {_DEEPEST} levels deep", code="invalid_json")
    name = _field(fields, "model", kind=str, default="") or model_name
    if name != model_name:
        message = f"the model {name[:100]!r} is not served here; ask for {model_name!r}"
        raise Refused(404, message, code="model_not_found", param="model")
    _refuse_unserved(fields)
    options = {key: value for key, value in fields.items() if key not in _OURS}
    ours = _field(fields, "casemate", kind=dict, default={})
    for unknown in ours.keys() - {"ground"}:
        raise Refused(400, f"'casemate' has no field {unknown[:100]!r}", code="unknown_field", param="casemate")
    stream_options = _field(fields, "stream_options", kind=dict, default={})
    return Call(
        request=ChatRequest(messages=_messages(fields), model=name, options=MappingProxyType(options)),
        stream=_field(fields, "stream", kind=bool, default=False),
        include_usage=_field(stream_options, "include_usage", kind=bool, default=False, within="stream_options."),
        ground=_field(ours, "ground", kind=bool, default=False, within="casemate."),
    )


async def _collected(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        part = message.get("body", b"")
        size += len(part)
        if size <= LIMIT_BYTES:
            parts.append(part)
        else:
            parts.clear()
        if size > _DISCARD_BYTES:
            raise _too_long()
        if not message.get("more_body"):
            break
    if size > LIMIT_BYTES:
        raise _too_long()
    return b"".join(parts)


def _too_long() -> Refused:
    message = f"the body is longer than {LIMIT_BYTES >> 20} MB; send less context"
    return Refused(413, message, code="request_too_large", headers=[(b"connection", b"close")])


def _field(fields: dict[str, Any], name: str, *, kind: type[T], default: T, within: str = "") -> T:
    value = fields.get(name)
    if value is None:
        return default
    if not isinstance(value, kind):
        words: dict[type, str] = {str: "a string", bool: "true or false", dict: "an object", list: "a list"}
        raise Refused(400, f"'{within}{name}' must be {words[kind]}", code="invalid_type", param=within + name)
    return value


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether a JSON value nests more than so many containers."""
    layer = [value]
    for _ in range(levels):
        containers = [part for part in layer if isinstance(part, dict | list)]
        layer = [part for found in containers for part in (found.values() if isinstance(found, dict) else found)]
    return any(isinstance(part, dict | list) for part in layer)


def _refuse_unserved(fields: dict[str, Any]) -> None:
    """Fields whose meaning we would lose: better refused than ignored."""
    if fields.get("n") not in (None, 1):  # a list from outside has no hash
        raise Refused(400, "'n' must be 1: one answer for one request", code="unsupported_value", param="n")
    for name in ("logprobs", "top_logprobs"):
        if fields.get(name):
            raise Refused(400, f"{name!r} is not served", code="unsupported_value", param=name)


def _messages(fields: dict[str, Any]) -> tuple[Message, ...]:
    found = _field(fields, "messages", kind=list, default=[])
    if not found:
        raise Refused(400, "'messages' is missing or empty", code="missing_required_parameter", param="messages")
    return tuple(_message(value, f"messages[{at}]") for at, value in enumerate(found))


def _message(value: Any, place: str) -> Message:
    if not isinstance(value, dict):
        raise Refused(400, f"{place} must be an object", code="invalid_type", param=place)
    if not isinstance(value.get("role"), str) or value["role"] not in _ROLES:
        known = ", ".join(sorted(_ROLES))
        raise Refused(400, f"{place}.role must be one of {known}", code="invalid_value", param=f"{place}.role")
    content = value.get("content")
    if not (content is None or isinstance(content, str) or _are_parts(content)):
        reason = f"{place}.content must be a string or a list of parts"
        raise Refused(400, reason, code="invalid_type", param=f"{place}.content")
    kept = {"role"} | ({"content"} if isinstance(content, str) else set())
    extra = {name: part for name, part in value.items() if name not in kept}
    return Message(role=value["role"], content=_text(content), extra=MappingProxyType(extra))


def _are_parts(content: Any) -> bool:
    return isinstance(content, list) and all(isinstance(part, dict) for part in content)


def _text(content: Any) -> str:
    """The text of a message, for those who only read; parts that are no text are passed on in `extra`."""
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if isinstance(part.get("text"), str))
    return content or ""
