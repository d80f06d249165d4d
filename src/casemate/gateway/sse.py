"""Deltas as the bytes of an OpenAI stream (https://platform.openai.com/docs/api-reference/chat-streaming)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import orjson

from casemate.chat.wire import Citation, Delta, Usage

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": still working\n\n"
"""A comment: every client skips it, every proxy on the way sees traffic."""


class Encoder:
    """Turns the Deltas of one answer into events.

    Args:
        name: the answer's id (`chatcmpl-…`).
        model: the name that the client asked for.
        created: seconds since 1970.
        include_usage: whether the client asked for usage in the stream.
    """

    def __init__(self, name: str, model: str, *, created: int, include_usage: bool) -> None:
        self._head = {"id": name, "object": "chat.completion.chunk", "created": created, "model": model}
        # With usage asked for, OpenAI's chunks say null until the one that has it.
        self._pending: dict[str, Any] = {"usage": None} if include_usage else {}
        self._include_usage = include_usage

    def opening(self) -> bytes:
        """The event before all others: whose turn it is."""
        return self._choice({"role": "assistant", "content": ""}, None)

    def encode(self, delta: Delta) -> bytes:
        """The events of one Delta, in the order of OpenAI's: text, reason to finish, usage, citations."""
        events = b""
        said = spoken(delta)
        if said or delta.finish_reason:
            events += self._choice(said, delta.finish_reason)
        if delta.usage and self._include_usage:
            events += event({**self._head, "choices": [], "usage": usage_object(delta.usage)})
        if delta.citations is not None:
            events += event({**self._head, "choices": [], "casemate": {"citations": citation_objects(delta.citations)}})
        return events

    def _choice(self, delta: dict[str, Any], finish_reason: str | None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return event({**self._head, "choices": [choice], **self._pending})


def event(value: Any) -> bytes:
    """One event that carries a JSON value."""
    return b"data: " + orjson.dumps(value) + b"\n\n"


def spoken(delta: Delta) -> dict[str, Any]:
    """The fields of the choice's delta; reasoning under both of its names, since clients read one or the other."""
    fields: dict[str, Any] = dict(delta.extra)
    if delta.content:
        fields["content"] = delta.content
    if delta.reasoning:
        fields["reasoning"] = fields["reasoning_content"] = delta.reasoning
    return fields


def usage_object(usage: Usage) -> dict[str, int]:
    """Usage as OpenAI writes it."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }


def citation_objects(citations: Sequence[Citation]) -> list[dict[str, Any]]:
    """Citations as JSON objects."""
    return [asdict(citation) for citation in citations]
