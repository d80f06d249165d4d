from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.chat.sse import Event, EventParser
from casemate.errors import ModelError


def events(*pieces: bytes) -> list[Event]:
    parser = EventParser()
    return [event for piece in pieces for event in parser.feed(piece)] + parser.close()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"data: a\n\n", [Event(b"a")]),
        (b"data:a\n\n", [Event(b"a")]),
        (b"data:  a\n\n", [Event(b" a")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [Event(b"a"), Event(b"b")]),
        (b"data: a\r\rdata: b\r\r", [Event(b"a"), Event(b"b")]),
        (b"data: a\ndata: b\n\n", [Event(b"a\nb")]),
        (b"data\n\n", [Event(b"")]),
        (b": comment\n\ndata: a\n\n", [Event(b"a")]),
        (b"event: ping\n\ndata: a\n\n", [Event(b"a")]),
        (b"event: error\ndata: a\n\ndata: b\n\n", [Event(b"a", "error"), Event(b"b")]),
        (b"error: a\n\n", [Event(b"a", "error")]),
        (b"id: 1\nretry: 5\nnonsense\ndata: a\n\n", [Event(b"a")]),
        (b"data: a", [Event(b"a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [Event(b"a")]),
        (b"\n\n\n", []),
        (b"", []),
    ],
)
def test_bytes_become_events_by_the_rules_of_the_standard(data: bytes, expected: list[Event]) -> None:
    assert events(data) == expected


_PIECES = [
    b"data: a",
    b"data:",
    b"\n",
    b"\r\n",
    b"\r",
    b": c",
    b"event: error",
    "数据".encode(),
    b"\xef\xbb\xbf",
    b"\x00",
]


@given(data=st.lists(st.sampled_from(_PIECES)).map(b"".join), cuts=st.lists(st.integers(0, 60)))
def test_no_cut_changes_the_events(data: bytes, cuts: list[int]) -> None:
    at = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    assert events(*(data[a:b] for a, b in pairwise(at))) == events(data)


@given(data=st.binary())
def test_any_bytes_are_read_without_a_crash_and_byte_by_byte_the_same(data: bytes) -> None:
    assert events(*(data[at : at + 1] for at in range(len(data)))) == events(data)


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 65536, b"data: " + b"x" * 65536 + b"\n"])
def test_an_endless_event_is_refused_before_it_fills_the_memory(piece: bytes) -> None:
    parser = EventParser()
    for _ in range(127):
        parser.feed(piece)
    with pytest.raises(ModelError, match="more than 8 MiB"):
        parser.feed(piece + piece)
