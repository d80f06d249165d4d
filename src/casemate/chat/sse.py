"""Server-sent events from bytes, wherever the network cuts them.

The rules are those of the HTML standard (https://html.spec.whatwg.org/multipage/server-sent-events.html), with two
liberties that real engines need: an event that the end of the stream leaves open still counts, and a line `error: …`
(older llama.cpp servers) is an event of the kind `error`.
"""

from __future__ import annotations

from dataclasses import dataclass

from casemate.errors import ModelError

_EVENT_LIMIT_BYTES = 8 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its `data` lines joined by line feeds, and its kind (`message` unless the stream names another)."""

    data: bytes
    kind: str = "message"


class EventParser:
    """Collects bytes and gives back events. Equal bytes give equal events, however they were cut."""

    def __init__(self) -> None:
        self._tail = b""
        self._data: list[bytes] = []
        self._kind = "message"
        self._open_bytes = 0
        self._after_return = False
        self._at_start = True

    def feed(self, data: bytes) -> list[Event]:
        """Take the next bytes.

        Returns:
            The events that they complete, oldest first.

        Raises:
            ModelError: one event is longer than 8 MiB.
        """
        *lines, self._tail = (self._tail + self._with_line_feeds(data)).split(b"\n")
        events = [event for line in lines if (event := self._line(line))]
        if self._open_bytes + len(self._tail) > _EVENT_LIMIT_BYTES:
            raise ModelError("the endpoint sent an event of more than 8 MiB")
        return events

    def close(self) -> list[Event]:
        """The event that the end of the stream left open, if any."""
        return [event for line in (self._tail, b"") if (event := self._line(line))]

    def _with_line_feeds(self, data: bytes) -> bytes:
        """`data` with CRLF and CR turned into LF; remembers a CR at the end, whose LF may come with the next bytes."""
        if self._after_return and data:
            data = data.removeprefix(b"\n")
            self._after_return = False
        if b"\r" in data:
            self._after_return = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return data

    def _line(self, line: bytes) -> Event | None:
        if self._at_start:
            line = line.removeprefix(_BYTE_ORDER_MARK)
            self._at_start = False
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name in {b"data", b"error"}:
            self._data.append(value)
            self._open_bytes += len(value)
        if name == b"error":
            self._kind = "error"
        elif name == b"event":
            self._kind = value.decode(errors="replace")
        return None  # a comment (no name), `id`, `retry` and unknown fields say nothing to us

    def _dispatch(self) -> Event | None:
        data, kind = self._data, self._kind or "message"
        self._data, self._kind, self._open_bytes = [], "message", 0
        return Event(b"\n".join(data), kind) if data else None
