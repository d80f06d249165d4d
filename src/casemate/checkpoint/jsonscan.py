"""Takes JSON apart member by member, so that a hostile file costs no more than what is kept of it.

A whole parser builds everything before anyone can refuse it: a hundred megabytes of `[],[],` become gigabytes of lists.
Here the caller takes each value in the one form that the format allows there, and a key that comes twice is refused
(most parsers keep the last, so two readers of one file could see two models).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from casemate.report.visible import visible

_SPACE = rb"[ \t\n\r]*+"
_TEXT = rb'"([^"\\\x00-\x1f]*+(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*+)*+)"'
_STRING, _NEXT_KEY = re.compile(_SPACE + _TEXT), re.compile(_SPACE + b"," + _SPACE + _TEXT + _SPACE + b":")
_OPEN, _CLOSE, _COMMA, _COLON, _END, _NULL = (
    re.compile(_SPACE + mark) for mark in (rb"\{", rb"\}", rb",", rb":", rb"\Z", rb"null")
)
_SHOWN_LETTERS = 80
_MOST_KEY_BYTES = 1 << 12
_FIRST_LOOK_BYTES = 1 << 3


class Malformed(Exception):  # noqa: N818 - it never leaves this package: readers turn it into a UsageError
    """The bytes are not what the format says; the text tells what is wrong."""


class Cursor:
    """A place in a JSON text. Everything that takes a value moves on behind it, or raises Malformed."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self.at = 0

    def members(self) -> Iterator[str]:
        """The keys of the object that begins here; take each value before asking for the next key."""
        self._must(_OPEN, "an object")
        if self._has(_CLOSE):
            return
        key, seen = self._key(), set[str]()
        while True:
            if key in seen:
                raise Malformed(f"the key {shown(key)} comes twice")
            seen.add(key)
            yield key
            if following := self.take(_NEXT_KEY):  # the usual case in one step, for there are many
                key = self._text_of(following[1], _MOST_KEY_BYTES)
            elif self._has(_CLOSE):
                return
            else:
                self._must(_COMMA, "a comma or the object's end")
                key = self._key()

    def string(self) -> str:
        """A text of any length."""
        return self._text_of(self._must(_STRING, "a text")[1], len(self._text))

    def texts(self, *, most: int) -> tuple[tuple[str, str], ...]:
        """An object of at most so many texts, or null for none."""
        if self._has(_NULL):
            return ()
        found: list[tuple[str, str]] = []
        for key in self.members():
            if len(found) >= most:
                raise Malformed(f"more than {most} texts")
            found.append((key, self.string()))
        return tuple(found)

    def take(self, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
        """What the pattern finds here, or None, and then nothing moves."""
        match = pattern.match(self._text, self.at)
        if match:
            self.at = match.end()
        return match

    def anything(self, *, most_bytes: int) -> object:
        """A value of any form whose text is short."""
        size_bytes = _FIRST_LOOK_BYTES
        while True:  # grows with the value, so that many small ones do not cost a look at the most each
            size_bytes = min(size_bytes * 8, most_bytes)
            found = self._decoded(self._text[self.at : self.at + size_bytes])
            if found:
                self.at += found[1]
                return found[0]
            if size_bytes == most_bytes:
                raise Malformed(f"no value of at most {most_bytes} bytes at byte {self.at}")

    def finish(self) -> None:
        """Nothing but white space may follow."""
        self._must(_END, "the end")

    def _key(self) -> str:
        key = self._text_of(self._must(_STRING, "a text")[1], _MOST_KEY_BYTES)
        self._must(_COLON, "a colon")
        return key

    def _text_of(self, raw: bytes, most_bytes: int) -> str:
        if len(raw) > most_bytes:
            raise Malformed(f"a name of {len(raw)} bytes, where {most_bytes} would be many")
        try:
            if b"\\" not in raw:
                return raw.decode()
            text: str = json.loads(b'"%b"' % raw)
            text.encode()  # half a surrogate pair is no text
        except ValueError as error:
            raise Malformed(f"a text that is not UTF-8 or has a wrong escape at byte {self.at}") from error
        return text

    def _decoded(self, raw: bytes) -> tuple[object, int] | None:
        """The value at the beginning and its bytes; None where there is none, or it may go on behind the end."""
        # Bytes that are no text become half surrogates, and those turn back into the same bytes for the count.
        piece = raw.decode(errors="surrogateescape")
        try:
            value, end = _ANY.raw_decode(piece, len(piece) - len(piece.lstrip(" \t\n\r")))
        except (ValueError, RecursionError):
            return None
        is_all = self.at + len(raw) >= len(self._text)
        return (value, len(piece[:end].encode(errors="surrogateescape"))) if end < len(piece) or is_all else None

    def _has(self, pattern: re.Pattern[bytes]) -> bool:
        return self.take(pattern) is not None

    def _must(self, pattern: re.Pattern[bytes], what: str) -> re.Match[bytes]:
        match = self.take(pattern)
        if match is None:
            raise Malformed(f"not JSON of the right form: {what} is missing at byte {self.at}")
        return match


def shown(text: str) -> str:
    """A foreign name, short and on one line, with nothing that a terminal obeys."""
    return _on_a_line(text if len(text) <= _SHOWN_LETTERS else f"{text[:_SHOWN_LETTERS]}…")


def shown_path(path: Path) -> str:
    """A path in full, on one line, with nothing that a terminal obeys."""
    return _on_a_line(str(path))


def _on_a_line(text: str) -> str:
    return visible(text.replace("\n", "␊").replace("\t", "␉"))


_ANY = json.JSONDecoder()
