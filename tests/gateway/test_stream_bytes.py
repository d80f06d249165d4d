from __future__ import annotations

from types import MappingProxyType

from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from casemate.chat.chunks import AnswerReader
from casemate.chat.wire import Citation, Delta, Usage
from casemate.gateway import sse

CITATION = Citation(id="CWE-89", name="SQL Injection", source="CWE", version="4.14", grade="H0", cited=True)
CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
ANSWER = (
    Delta(reasoning="想一想"),
    Delta(content="注入 💉\n\n"),
    Delta(extra=MappingProxyType({"tool_calls": [CALL]})),
    Delta(content="CWE-89", finish_reason="stop"),
    Delta(usage=Usage(prompt_tokens=65, completion_tokens=251)),
    Delta(citations=(CITATION,)),
)


def encoded(deltas: tuple[Delta, ...], *, include_usage: bool) -> bytes:
    encoder = sse.Encoder("chatcmpl-1", "m", created=1764500000, include_usage=include_usage)
    return b"".join((encoder.opening(), *map(encoder.encode, deltas), sse.DONE))


def test_the_bytes_of_a_stream_with_usage(snapshot: SnapshotAssertion) -> None:
    assert encoded(ANSWER, include_usage=True).decode() == snapshot


def test_the_bytes_of_a_stream_without_usage(snapshot: SnapshotAssertion) -> None:
    assert encoded(ANSWER, include_usage=False).decode() == snapshot


def test_a_delta_that_says_nothing_sends_nothing() -> None:
    encoder = sse.Encoder("chatcmpl-1", "m", created=0, include_usage=False)
    assert encoder.encode(Delta()) == b""
    assert encoder.encode(Delta(usage=Usage(1, 1))) == b""


_DELTAS = st.lists(
    st.builds(Delta, content=st.text(), reasoning=st.text()).filter(lambda delta: delta != Delta()), max_size=5
)


@given(deltas=_DELTAS)
def test_what_we_write_reads_back_as_the_same_deltas(deltas: list[Delta]) -> None:
    ended = (*deltas, Delta(finish_reason="stop"), Delta(usage=Usage(1, 2)))
    assert tuple(AnswerReader().feed(encoded(ended, include_usage=True))) == ended
