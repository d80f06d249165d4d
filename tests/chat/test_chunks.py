from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType

import pytest

from casemate.chat import chunks
from casemate.chat.wire import ChatRequest, Delta, Message, Usage
from casemate.errors import ModelError
from fakes.streams import DONE, OPENING, STOP, STREAMS, Stream, last, say

RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("*.sse"))
"""Whole answers as engines sent them: `max_tokens` 24, temperature 0, usage asked for."""


def read(*pieces: bytes) -> tuple[list[Delta], bool]:
    reader = chunks.AnswerReader()
    deltas = [delta for piece in pieces for delta in reader.feed(piece)]
    return deltas + reader.close(), reader.finished


@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.name)
def test_every_way_of_writing_an_answer_means_the_same(stream: Stream) -> None:
    deltas, finished = read(stream.data)
    assert "".join(delta.content for delta in deltas) == stream.content
    assert "".join(delta.reasoning for delta in deltas) == stream.reasoning
    assert [delta.finish_reason for delta in deltas if delta.finish_reason] == [stream.finish_reason]
    assert [delta.usage for delta in deltas if delta.usage] == ([stream.usage] if stream.usage else [])
    assert finished


@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.name)
def test_a_stream_cut_at_any_byte_gives_the_same_deltas(stream: Stream) -> None:
    expected = read(stream.data)
    for at in range(len(stream.data) + 1):
        assert read(stream.data[:at], stream.data[at:]) == expected
    assert read(*(stream.data[at : at + 1] for at in range(len(stream.data)))) == expected


@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.name)
def test_a_stream_that_ends_early_is_never_taken_for_whole(stream: Stream) -> None:
    whole, _ = read(stream.data)
    for at in range(len(stream.data)):
        try:
            deltas, finished = read(stream.data[:at])
        except ModelError:
            continue  # half a chunk
        assert deltas == whole or not finished or any(delta.finish_reason for delta in deltas)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_recorded_answer_of_an_engine_cut_at_any_byte_gives_the_same_deltas(path: Path) -> None:
    data = path.read_bytes()
    expected, finished = read(data)
    assert finished
    assert any(delta.content for delta in expected)
    assert sum(delta.usage is not None for delta in expected) == 1
    for at in range(len(data) + 1):
        assert read(data[:at], data[at:]) == (expected, True)


def test_a_stream_that_breaks_off_still_tells_what_it_counted() -> None:
    deltas, finished = read(say("Hel", usage=b'{"prompt_tokens":65,"completion_tokens":100}'))
    assert deltas[-1].usage == Usage(prompt_tokens=65, completion_tokens=100)
    assert not finished


def test_tool_calls_pass_as_the_engine_sent_them() -> None:
    calls = [{"index": 0, "id": "call_1", "function": {"name": "look", "arguments": '{"a"'}}]
    chunk = {"choices": [{"delta": {"role": "assistant", "content": None, "tool_calls": calls}}]}
    deltas, _ = read(b"data: " + json.dumps(chunk).encode() + b"\n\n" + STOP + DONE)
    assert deltas[0] == Delta(extra={"tool_calls": calls})


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (b'data: {"error":{"message":"out of memory","code":500}}\n\n', "out of memory"),
        (b'data: {"error":"out of memory"}\n\n', "out of memory"),
        (b'error: {"code":500,"message":"out of memory","type":"server_error"}\n\n', "out of memory"),
        (b'event: error\ndata: {"message":"out of memory"}\n\n', "out of memory"),
        (b"event: error\ndata: out of memory\n\n", "out of memory"),
        (b'data: {"object":"error","message":"out of memory","code":500}\n\n', "out of memory"),
        (b"data: {oops\n\n", "broken chunk"),
        (b"data: [1]\n\n", "reported"),
        (b'data: {"choices":["x"]}\n\n', "no chat completion"),
        (b'data: {"choices":{"a":1}}\n\n', "no chat completion"),
        (b'data: {"choices":[{"delta":"x"}]}\n\n', "no chat completion"),
    ],
)
def test_an_error_inside_a_good_answer_is_an_error(frame: bytes, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read(OPENING + say("Hel") + frame + STOP + DONE)


def test_an_error_frame_keeps_its_status() -> None:
    with pytest.raises(ModelError) as caught:
        read(b'data: {"error":{"message":"busy","code":503}}\n\n')
    assert caught.value.status == 503


@pytest.mark.parametrize("usage", [b'"x"', b"[1]", b'{"prompt_tokens":"1"}', b'{"completion_tokens":3}', b"{}"])
def test_usage_that_is_none_is_not_shown_as_fact(usage: bytes) -> None:
    deltas, _ = read(say("Hello") + STOP + last(usage) + DONE)
    assert all(delta.usage is None for delta in deltas)


def test_an_answer_in_one_object_is_read_too() -> None:
    answer = {
        "choices": [{"message": {"role": "assistant", "content": "你\n好"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }
    deltas = chunks.whole(json.dumps(answer, indent=1, ensure_ascii=False).encode())
    assert deltas == [Delta(content="你\n好", finish_reason="stop"), Delta(usage=Usage(3, 2))]


def test_the_body_carries_messages_and_options_untouched_and_asks_for_usage() -> None:
    parts = [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    request = ChatRequest(
        messages=(
            Message("system", "Be brief."),
            Message("user", "hi", MappingProxyType({"content": parts})),
            Message("tool", "4", MappingProxyType({"tool_call_id": "call_1"})),
        ),
        model="public-name",
        options=MappingProxyType(
            {"temperature": 0, "stop": ["\n"], "stream_options": {"continuous_usage_stats": True}, "x_unknown": None}
        ),
    )
    assert json.loads(chunks.body(request, "engine-name")) == {
        "model": "engine-name",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": parts},
            {"role": "tool", "content": "4", "tool_call_id": "call_1"},
        ],
        "temperature": 0,
        "stop": ["\n"],
        "x_unknown": None,
        "stream": True,
        "stream_options": {"continuous_usage_stats": True, "include_usage": True},
    }


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b'{"error":{"message":"too long"}}', "too long"),
        (b'{"error":"too long"}', "too long"),
        (b'{"message":"too long"}', "too long"),
        (b'{"detail":"too long"}', '{"detail":"too long"}'),
        (b"<html>\n  Bad Gateway</html>", "<html> Bad Gateway</html>"),
        (b"", ""),
    ],
)
def test_a_refusal_has_its_sentence_found(body: bytes, sentence: str) -> None:
    assert chunks.refusal(body) == sentence
