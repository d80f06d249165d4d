"""OpenAI chat completions on the wire: a ChatRequest becomes a body, the bytes of an answer become Deltas.

Pure. Every oddity of engines that we know is met here, so that nobody above has to know any: usage in five shapes,
two names for reasoning, error frames inside a successful answer, a missing `[DONE]`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import orjson

from casemate.chat.sse import Event, EventParser
from casemate.chat.wire import ChatRequest, Delta, Usage
from casemate.errors import ModelError

_REASONING_NAMES = ("reasoning_content", "reasoning")
"""vLLM renamed the first to the second; some servers send both, with the same text."""
_READ = frozenset({"role", "content", *_REASONING_NAMES})
_EXCERPT_LENGTH = 300


def body(request: ChatRequest, model: str) -> bytes:
    """The JSON body that asks for this request's answer as a stream with usage.

    Args:
        request: messages and options; both are passed on untouched.
        model: the name by which the endpoint knows the model; empty takes the request's own.
    """
    return orjson.dumps(
        {
            **request.options,
            "model": model or request.model,
            "messages": [
                {"role": message.role, "content": message.content, **message.extra} for message in request.messages
            ],
            "stream": True,
            "stream_options": {**(request.options.get("stream_options") or {}), "include_usage": True},
        }
    )


class AnswerReader:
    """Reads one streamed answer. Equal bytes give equal Deltas, however they were cut.

    `finished` tells whether the answer is whole: the endpoint gave a finish reason or said `[DONE]`.
    """

    def __init__(self) -> None:
        self._parser = EventParser()
        self._usage: Usage | None = None
        self._reason_given = False
        self.finished = False
        self.done = False

    def feed(self, data: bytes) -> list[Delta]:
        """Take the next bytes of the answer.

        Returns:
            The Deltas that they complete; usage comes last and once, with `[DONE]` or from `close`.

        Raises:
            ModelError: an error frame, or something that is no chat completion.
        """
        return self._deltas(self._parser.feed(data))

    def close(self) -> list[Delta]:
        """What the end of the bytes completes. Look at `finished` afterwards: if it is not set, the answer is cut."""
        return self._deltas(self._parser.close()) + ([] if self.done else self._last())

    def _deltas(self, events: list[Event]) -> list[Delta]:
        return [delta for event in events for delta in self._read(event)]

    def _read(self, event: Event) -> list[Delta]:
        if self.done:
            return []
        if event.data.strip() == b"[DONE]":
            self.done = self.finished = True
            # The endpoint vouches for a whole answer; the port promises its readers a reason.
            return ([] if self._reason_given else [Delta(finish_reason="stop")]) + self._last()
        chunk = _parsed(event)
        self._usage = _usage(chunk.get("usage")) or self._usage
        delta = _delta(chunk)
        if delta.finish_reason:
            self._reason_given = self.finished = True
        return [delta] if delta != Delta() else []

    def _last(self) -> list[Delta]:
        usage, self._usage = self._usage, None
        return [Delta(usage=usage)] if usage else []


def whole(data: bytes) -> list[Delta]:
    """The Deltas of an answer that came in one JSON object although a stream was asked for.

    Raises:
        ModelError: it is an error object, or no chat completion.
    """
    reader = AnswerReader()
    return reader.feed(b"data: " + b" ".join(data.split(b"\n")) + b"\n\ndata: [DONE]\n\n")


def refusal(data: bytes) -> str:
    """The sentence in an error body, whatever its shape; an excerpt of the body if it has none."""
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        found = None
    return _message(found) or " ".join(data.decode(errors="replace").split())[:_EXCERPT_LENGTH]


def _parsed(event: Event) -> dict[str, Any]:
    try:
        chunk = orjson.loads(event.data)
    except orjson.JSONDecodeError as error:
        if event.kind == "error":
            raise ModelError(f"the endpoint reported: {refusal(event.data)}") from error
        raise ModelError(f"the endpoint sent a broken chunk: {refusal(event.data)!r}") from error
    if not isinstance(chunk, dict) or event.kind == "error" or chunk.get("error") or chunk.get("object") == "error":
        raise ModelError(f"the endpoint reported: {_message(chunk) or refusal(event.data)}", status=_status(chunk))
    return chunk


def _delta(chunk: dict[str, Any]) -> Delta:
    choices = chunk.get("choices") or [{}]
    choice = choices[0] if isinstance(choices, list) else None
    part = (choice.get("delta") or choice.get("message") or {}) if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(part, dict):
        raise ModelError("the endpoint sent a chunk that is no chat completion")
    extra = {name: value for name, value in part.items() if name not in _READ and value not in (None, [], "")}
    return Delta(
        content=_text(part.get("content")),
        reasoning=next((text for name in _REASONING_NAMES if (text := _text(part.get(name)))), ""),
        finish_reason=_text(choice.get("finish_reason")) or None,
        extra=MappingProxyType(extra),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _usage(value: Any) -> Usage | None:
    """The counts, or None where there are none; all zeros is how some engines say "not yet"."""
    if not isinstance(value, dict):
        return None
    prompt, completion = value.get("prompt_tokens"), value.get("completion_tokens", 0)
    if not isinstance(prompt, int) or not isinstance(completion, int) or prompt + completion <= 0:
        return None
    return Usage(prompt_tokens=prompt, completion_tokens=completion)


def _message(found: Any) -> str:
    inner = found.get("error", found) if isinstance(found, dict) else found
    text = inner.get("message", "") if isinstance(inner, dict) else inner
    return " ".join(text.split())[:_EXCERPT_LENGTH] if isinstance(text, str) else ""


def _status(found: Any) -> int:
    inner = found.get("error", found) if isinstance(found, dict) else {}
    code = inner.get("code") if isinstance(inner, dict) else 0
    return code if isinstance(code, int) and 400 <= code <= 599 else 0
