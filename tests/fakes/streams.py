"""Answers of engines as bytes, one for each way of writing them that we know, with what they mean."""

from __future__ import annotations

from dataclasses import dataclass

from casemate.chat.wire import Usage


@dataclass(frozen=True, slots=True)
class Stream:
    """The bytes of one answer, and what a reader must find in them."""

    name: str
    data: bytes
    content: str = "Hello"
    reasoning: str = ""
    usage: Usage | None = None
    finish_reason: str = "stop"


_COUNTED = Usage(prompt_tokens=65, completion_tokens=251)
_USAGE = b'{"prompt_tokens":65,"completion_tokens":251,"total_tokens":316}'
_NOT_YET = b'{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}'


def say(text: str, *, usage: bytes = b"", finish: bytes = b"null", field: str = "content") -> bytes:
    """One event with one increment."""
    tail = b',"usage":' + usage if usage else b""
    delta = f'{{"{field}":"{text}"}}'.encode() if text else b"{}"
    return b'data: {"choices":[{"index":0,"delta":' + delta + b',"finish_reason":' + finish + b"}]" + tail + b"}\n\n"


def last(usage: bytes) -> bytes:
    """OpenAI's event that carries only usage."""
    return b'data: {"choices":[],"usage":' + usage + b"}\n\n"


OPENING = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
STOP = say("", finish=b'"stop"')
DONE = b"data: [DONE]\n\n"
_PLAIN = OPENING + say("Hel") + say("lo") + STOP

STREAMS = (
    Stream("usage alone in the last chunk", _PLAIN + last(_USAGE) + DONE, usage=_COUNTED),
    Stream("usage beside an empty delta", _PLAIN + say("", usage=_USAGE) + DONE, usage=_COUNTED),
    Stream(
        "usage in every chunk, zero or null until the end",
        OPENING
        + say("Hel", usage=_NOT_YET)
        + say("lo", usage=b"null")
        + say("", usage=_USAGE, finish=b'"stop"')
        + DONE,
        usage=_COUNTED,
    ),
    Stream("no usage", _PLAIN + DONE),
    Stream(
        "usage that grows",
        OPENING
        + say("Hel", usage=b'{"prompt_tokens":65,"completion_tokens":1}')
        + say("lo", usage=b'{"prompt_tokens":65,"completion_tokens":2}')
        + STOP
        + last(_USAGE)
        + DONE,
        usage=_COUNTED,
    ),
    Stream("no [DONE]", _PLAIN + last(_USAGE), usage=_COUNTED),
    Stream("no blank line at the end", (_PLAIN + DONE)[:-2]),
    Stream("[DONE] without a reason", OPENING + say("Hello") + DONE),
    Stream("chunks after [DONE]", _PLAIN + DONE + say("ignored")),
    Stream("no space after the colon", (_PLAIN + last(_USAGE) + DONE).replace(b"data: ", b"data:"), usage=_COUNTED),
    Stream("CRLF", (_PLAIN + last(_USAGE) + DONE).replace(b"\n", b"\r\n"), usage=_COUNTED),
    Stream("CR", (_PLAIN + last(_USAGE) + DONE).replace(b"\n", b"\r"), usage=_COUNTED),
    Stream("a byte order mark", b"\xef\xbb\xbf" + _PLAIN + DONE),
    Stream("comments and unknown fields", b": ping\n\nretry: 10\n" + OPENING + b":\n\nid: 7\n" + say("Hello") + STOP),
    Stream(
        "data over several lines",
        b'data: {"choices":[{"index":0,\ndata: "delta":{"content":"Hello"},\ndata: "finish_reason":"stop"}]}\n\n'
        + DONE,
    ),
    Stream(
        "Chinese, an emoji and escapes",
        say("漏洞：注入") + say("😀") + say(r"\n\ud83d\ude00 \u4e2d") + STOP + DONE,
        content="漏洞：注入😀\n😀 中",
    ),
    Stream(
        "reasoning under its new name",
        say("思考", field="reasoning") + say("Hello") + STOP + DONE,
        reasoning="思考",
    ),
    Stream(
        "reasoning under its old name",
        say("why", field="reasoning_content") + say("Hello") + STOP + DONE,
        reasoning="why",
    ),
    Stream(
        "reasoning under both names",
        b'data: {"choices":[{"delta":{"reasoning":"why","reasoning_content":"why","content":null}}]}\n\n'
        + say("Hello")
        + STOP
        + DONE,
        reasoning="why",
    ),
    Stream(
        "cut by the length limit", OPENING + say("Hello") + say("", finish=b'"length"') + DONE, finish_reason="length"
    ),
)
