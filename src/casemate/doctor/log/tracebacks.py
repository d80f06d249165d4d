"""Tracebacks put together from the lines of several processes that write into one log.

The line that matters ends a traceback; the frames above it say where it happened; and tracebacks chain: "The above
exception was the direct cause" (the first one is the reason), "During handling of the above exception" (often, too).
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass
from enum import Enum, auto

from casemate.doctor.log.lines import Line

_HEADER = "Traceback (most recent call last)"
_DIRECT = "The above exception was the direct cause of the following exception"
_DURING = "During handling of the above exception, another exception occurred"
_FRAMES_KEPT = 80
_LONGEST = 3000
_PROCESSES_KEPT = 256
_BRANCHES = ("|", "+")
_TREE = re.compile(r"^\s*(?:[|+][\s-]*)+")
_BUILTIN = r"_{0,2}[A-Z]\w{0,80}(?:Error|Exception|Exit|Interrupt|Iteration|Warning|Group)"
_FOREIGN = r"(?:[A-Za-z_]\w{0,80}\.){1,12}(?:_{0,2}[A-Z]\w{0,80}|\w{0,80}(?:error|exception|timeout|failure|exit))"
_EXCEPTION = re.compile(rf"(?:{_BUILTIN}|{_FOREIGN})(?:: |:?$)|ray\.exceptions")
_LOOKUP = re.compile(r"^(?:KeyError|AttributeError|IndexError|StopIteration|LookupError|queue\.Empty|_queue\.Empty)\b")


class Part(Enum):
    """What a line is to a traceback."""

    OUTSIDE = auto()
    HEAD = auto()
    BODY = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Raised:
    """The end of a traceback: the exception's line, and what stood above it.

    `code` is the last source line that the traceback shows, with its line number; `frames` are its last frames' text.
    `cause` is the exception before it in a chain, where that one is the reason; `asked` is the one before it where
    that was only a lookup that failed.
    """

    line: Line
    frames: str
    code: str = ""
    code_line: int = 0
    cause: Raised | None = None
    asked: Raised | None = None

    @property
    def origin(self) -> Raised:
        """The first of the chain."""
        return self if self.cause is None else self.cause.origin


@dataclass(slots=True)
class _Open:
    begun: int
    where: str
    frames: deque[Line]
    cause: Raised | None
    asked: Raised | None


class Tracebacks:
    """Follows the tracebacks of each process; `feed` says what a line is to them."""

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}
        self._ended: dict[str, Raised] = {}
        self._chained: dict[str, tuple[Raised | None, Raised | None]] = {}
        self.last: Raised | None = None

    @property
    def active(self) -> bool:
        """Whether any process is inside a traceback or just behind one, so that every line counts."""
        return bool(self._open)

    def feed(self, line: Line) -> Part:
        """Take one line. After Part.END, `last` is what was raised."""
        if _HEADER in line.text:
            self._begin(line)
            return Part.HEAD
        held = self._open.get(line.process)
        if held is None:
            self._link(line)
            return Part.OUTSIDE
        if line.number - held.begun > _LONGEST:
            del self._open[line.process]
            return Part.OUTSIDE
        if line.level and line.where.partition(":")[0] != held.where.partition(":")[0]:
            return Part.OUTSIDE  # another thread's line in between
        text, first = line.text, line.text.lstrip()[:1]
        text = _TREE.sub("", text) if first in _BRANCHES else text
        if not first or not text or text[0].isspace():
            held.frames.append(line)
            return Part.BODY
        return self._unindented(line, text, held=held)

    def _unindented(self, line: Line, text: str, *, held: _Open) -> Part:
        if not _EXCEPTION.match(text):
            return Part.OUTSIDE  # frames are indented: another program's line in between
        self._end(line, text, held=held)
        return Part.END

    def _begin(self, line: Line) -> None:
        if len(self._open) >= _PROCESSES_KEPT:
            self._open.clear()
        cause, asked = self._chained.pop(line.process, (None, None))
        self._open[line.process] = _Open(line.number, line.where, deque(maxlen=_FRAMES_KEPT), cause, asked)

    def _end(self, line: Line, text: str, *, held: _Open) -> None:
        del self._open[line.process]
        code = next((one for one in reversed(held.frames) if _is_code(one.text)), None)
        self.last = Raised(
            line=Line(line.number, line.process, line.level, line.where, text),
            frames="\n".join(one.text for one in held.frames),
            code=code.text.strip() if code else "",
            code_line=code.number if code else 0,
            cause=held.cause if _depth(held.cause) < 16 else None,
            asked=held.asked,
        )
        if len(self._ended) >= _PROCESSES_KEPT:
            self._ended.clear()
        self._ended[line.process] = self.last

    def _link(self, line: Line) -> None:
        before = self._ended.get(line.process)
        if before is None:
            return
        if _DIRECT in line.text:
            self._chained[line.process] = (before, None)
        elif _DURING in line.text:
            # A lookup that failed is how code asks; what it raised then is what it means.
            looked_up = _LOOKUP.match(before.line.text)
            self._chained[line.process] = (None, before) if looked_up else (before, None)


def _is_code(text: str) -> bool:
    bare = text.strip()
    return bool(bare) and not bare.startswith(("File ", "^", "~", "[Previous")) and bool(bare.strip("^~ "))


def _depth(raised: Raised | None) -> int:
    return 0 if raised is None else 1 + _depth(raised.cause)
