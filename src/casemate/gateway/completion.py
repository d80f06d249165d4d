"""Deltas as the one JSON object of an answer that is not streamed."""

from __future__ import annotations

from typing import Any

from casemate.chat.wire import Citation, Delta, Usage
from casemate.gateway.sse import citation_objects, usage_object


class Completion:
    """Collects the Deltas of one answer.

    Args:
        name: the answer's id (`chatcmpl-…`).
        model: the name that the client asked for.
        created: seconds since 1970.
    """

    def __init__(self, name: str, model: str, *, created: int) -> None:
        self._head = {"id": name, "object": "chat.completion", "created": created, "model": model}
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._extra: dict[str, Any] = {}
        self._finish_reason: str | None = None
        self._usage: Usage | None = None
        self._citations: tuple[Citation, ...] | None = None

    def add(self, delta: Delta) -> None:
        """Take the next Delta."""
        self._content.append(delta.content)
        self._reasoning.append(delta.reasoning)
        self._finish_reason = delta.finish_reason or self._finish_reason
        self._usage = delta.usage or self._usage
        self._citations = self._citations if delta.citations is None else delta.citations
        for name, value in delta.extra.items():
            self._extra[name] = _joined(self._extra.get(name), value)

    def value(self) -> dict[str, Any]:
        """The `chat.completion` object. `usage` is null where the engine counted nothing."""
        choice = {"index": 0, "message": self._message(), "finish_reason": self._finish_reason, "logprobs": None}
        citations = {} if self._citations is None else {"casemate": {"citations": citation_objects(self._citations)}}
        usage = usage_object(self._usage) if self._usage else None
        return {**self._head, "choices": [choice], "usage": usage, **citations}

    def _message(self) -> dict[str, Any]:
        content, reasoning = "".join(self._content), "".join(self._reasoning)
        thought = {"reasoning": reasoning, "reasoning_content": reasoning} if reasoning else {}
        extra = dict(self._extra)
        if isinstance(calls := extra.get("tool_calls"), list):  # an index orders increments; a whole answer has none
            extra["tool_calls"] = [{name: part for name, part in call.items() if name != "index"} for call in calls]
        only_calls = not content and "tool_calls" in extra
        return {"role": "assistant", "content": None if only_calls else content, **thought, **extra}


def _joined(before: Any, value: Any) -> Any:
    """Two increments of one field: texts are joined, calls are matched by their index, else the later one holds."""
    if isinstance(before, str) and isinstance(value, str):
        return before + value
    if not isinstance(value, list):
        return value
    calls: list[Any] = list(before or [])
    for part in value:
        place = next((at for at, call in enumerate(calls) if _same_call(call, part)), None)
        if place is None:
            calls.append(part)
        else:
            calls[place] = _merged(calls[place], part)
    return calls


def _same_call(call: Any, part: Any) -> bool:
    return isinstance(call, dict) and isinstance(part, dict) and "index" in part and call.get("index") == part["index"]


def _merged(call: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """A call with its next increment: only the function's arguments grow, what was said before stays."""
    function = dict(call.get("function") or {})
    grown = part.get("function") or {}
    function["arguments"] = (function.get("arguments") or "") + (grown.get("arguments") or "")
    return {**part, **call, "function": {**grown, **function}}
