"""JSON text as values whose texts know where they stand. Pure, and without recursion: its input may be hostile."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

_TOKEN = re.compile(r'\s*(?:([{}\[\],:])|("[^"\\]*(?:\\.[^"\\]*)*")|([^\s{}\[\],:"]+))', re.DOTALL)
_CHARACTER = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|.", re.DOTALL)


class Placed(str):
    """A text of a JSON file; `at` is the offset of its opening quote and `raw` what stands between its quotes."""

    __slots__ = ("at", "raw")

    at: int
    raw: str

    def spans(self) -> list[tuple[int, int]]:
        """For each character where it begins and ends in the file."""
        begin = self.at + 1
        return [(begin + found.start(), begin + found.end()) for found in _CHARACTER.finditer(self.raw)]


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a text, to tell places by offsets."""

    begins: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> Lines:
        """Where each line begins; it ends with LF, CR, or both."""
        return cls((0, *(found.end() for found in re.finditer("\r\n|\r|\n", text))))

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1."""
        line = bisect_right(self.begins, offset)
        return line, offset - self.begins[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """Where a place stands, counted from the beginning of the text."""
        return self.begins[line - 1] + column - 1


def load(text: str) -> Any:
    """The value of a JSON text: objects and arrays of `Placed` texts, numbers and constants.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    json.loads(text)  # from here on it is sound
    building = _Building()
    for found in _TOKEN.finditer(text):
        mark, quoted, plain = found.groups()
        if mark in {"{", "["}:
            building.open({} if mark == "{" else [])
        elif mark in {"}", "]"}:
            building.holders.pop()
        elif quoted is not None:
            building.text(_placed(quoted, found.start(2)))
        elif plain is not None:
            building.put(json.loads(plain))
    return building.whole


@dataclass(slots=True)
class _Building:
    """What is read so far: the holders that are open, and in an object the key that waits for its value."""

    whole: Any = None
    holders: list[dict[str, Any] | list[Any]] = field(default_factory=list)
    keys: dict[int, str] = field(default_factory=dict)

    def open(self, holder: dict[str, Any] | list[Any]) -> None:
        self.put(holder)
        self.holders.append(holder)

    def text(self, text: Placed) -> None:
        holder = self.holders[-1] if self.holders else None
        if isinstance(holder, dict) and len(self.holders) not in self.keys:
            self.keys[len(self.holders)] = text
        else:
            self.put(text)

    def put(self, value: Any) -> None:
        match self.holders[-1] if self.holders else None:
            case dict() as holder:
                holder[self.keys.pop(len(self.holders))] = value
            case list() as holder:
                holder.append(value)
            case _:
                self.whole = value


def _placed(quoted: str, at: int) -> Placed:
    text = Placed(json.loads(quoted))
    text.at, text.raw = at, quoted[1:-1]
    return text
