"""A stretch of a JSON file that slides: the values one after another, however long the file is."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from casemate.errors import KnowledgeError
from casemate.knowledge.feeds.packed import REMEDY

CHUNK = 1 << 16
MAX_CHARS = 1 << 23
"""Of one record. The largest official one, ATT&CK's list of its own contents, has half of it."""

_BLANK = re.compile(r"[ \t\r\n]*")
_NAMES = ("id", "ID")
_NAMED = re.compile(r'"(?:id|ID)"\s*:\s*"([^"\\]{1,80})"')


class Window:
    """Gives one JSON value after another out of chunks of text, and knows the line of each."""

    def __init__(self, path: Path, chunks: Iterator[str]) -> None:
        self._path = path
        self._chunks = chunks
        self._text = ""
        self._at = 0
        self._dropped = 0
        self._line = 1
        self._record: dict[str, Any] = {}
        self._began = 0
        self._decode = json.JSONDecoder().raw_decode

    @property
    def taken(self) -> int:
        """How many characters lie behind."""
        return self._dropped + self._at

    def begin(self, record: dict[str, Any] | None = None, *, line: int = 0) -> dict[str, Any]:
        """An object begins here that is read member by member: what breaks from now on is part of it."""
        self._record = {} if record is None else record
        self._began = line or self._line
        return self._record

    def end(self) -> int:
        """That object is left; gives the line where it began."""
        began, self._record, self._began = self._began, {}, 0
        return began

    def peek(self) -> str:
        """The next character that is no blank; empty at the end of the file."""
        while True:
            blank = _BLANK.match(self._text, self._at)
            self._advance(blank.end() if blank else self._at)
            if self._at < len(self._text) or not self._grow():
                return self._text[self._at : self._at + 1]

    def take(self, allowed: str) -> str:
        """The next character that is no blank, which must be one of those."""
        found = self.peek()
        if not found or found not in allowed:
            raise self.damaged()
        self._at += 1
        return found

    def at_hand(self, *, without: Collection[str]) -> dict[str, Any] | None:
        """The next object if it is read to its end already and has none of these members; None if not."""
        self.peek()
        try:
            value, end = self._decode(self._text, self._at)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict) or any(name in value for name in without):
            return None
        self._advance(end)
        return value

    def name(self) -> str:
        """The name of an object's next member."""
        if self.peek() != '"':
            raise self.damaged()
        name = str(self.value())
        self.take(":")
        return name

    def value(self) -> Any:
        """The next value, which may reach far beyond what is read yet."""
        self.peek()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except RecursionError as error:
                raise self.damaged() from error
            except ValueError as error:
                if len(self._text) - self._at > MAX_CHARS or not self._grow():
                    raise self.damaged() from error
                continue
            if end == len(self._text) and not isinstance(value, dict | list | str) and self._grow():
                continue  # of a number at the edge the rest may be missing
            self._advance(end)
            return value

    def damaged(self) -> KnowledgeError:
        """What is wrong here, by the line where the object begins, and its name if that can still be read."""
        known = next((value for key in _NAMES if isinstance(value := self._record.get(key), str)), "")
        match = None if self._began else _NAMED.search(self._text, self._at, self._at + CHUNK)
        named = known or (match[1] if match else "")
        what = f"holds a damaged object{f', {named}' if named else ''}"
        return KnowledgeError(what, where=f"{self._path}:{self._began or self._line}", remedy=REMEDY)

    def _grow(self) -> bool:
        """Read on, as much as is unread already, so that a long value is tried few times."""
        want = max(CHUNK, len(self._text) - self._at)
        parts = [self._text[self._at :]]
        self._dropped += self._at
        self._at = 0
        while want > 0 and (chunk := next(self._chunks, "")):
            parts.append(chunk)
            want -= len(chunk)
        self._text = "".join(parts)
        return len(parts) > 1

    def _advance(self, end: int) -> None:
        self._line += self._text.count("\n", self._at, end)
        self._at = end
