from __future__ import annotations

from types import MappingProxyType
from typing import Any

from syrupy.assertion import SnapshotAssertion

from casemate.chat.wire import Citation, Delta, Usage
from casemate.gateway.completion import Completion


def collected(*deltas: Delta) -> dict[str, Any]:
    completion = Completion("chatcmpl-1", "m", created=1764500000)
    for delta in deltas:
        completion.add(delta)
    return completion.value()


def calls(*parts: dict[str, Any]) -> Delta:
    return Delta(extra=MappingProxyType({"tool_calls": list(parts)}))


def test_an_answer_in_one_object(snapshot: SnapshotAssertion) -> None:
    citation = Citation(id="CWE-89", name="SQL Injection", source="CWE", version="4.14", grade="H0", cited=True)
    assert (
        collected(
            Delta(reasoning="think"),
            Delta(content="CWE"),
            Delta(content="-89", finish_reason="stop"),
            Delta(usage=Usage(65, 251)),
            Delta(citations=(citation,)),
        )
        == snapshot
    )


def test_usage_that_nobody_counted_is_null_and_no_citations_are_claimed() -> None:
    value = collected(Delta(content="x", finish_reason="stop"))
    assert value["usage"] is None
    assert "casemate" not in value


def test_tool_calls_grow_together_by_their_index() -> None:
    message = collected(
        calls({"index": 0, "id": "a", "type": "function", "function": {"name": "look", "arguments": ""}}),
        calls({"index": 1, "id": "b", "type": "function", "function": {"name": "find", "arguments": '{"q"'}}),
        calls({"index": 0, "function": {"arguments": '{"x": 1'}}, {"index": 1, "function": {"arguments": ": 2}"}}),
        calls({"index": 0, "function": {"arguments": "}"}}),
        Delta(finish_reason="tool_calls"),
    )["choices"][0]["message"]
    assert message == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"x": 1}'}},
            {"id": "b", "type": "function", "function": {"name": "find", "arguments": '{"q": 2}'}},
        ],
    }


def test_other_fields_of_the_message_are_kept() -> None:
    parts = [Delta(extra=MappingProxyType({"refusal": text, "annotations": 1})) for text in ("I can", "not")]
    message = collected(*parts, Delta(finish_reason="stop"))["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "", "refusal": "I cannot", "annotations": 1}
