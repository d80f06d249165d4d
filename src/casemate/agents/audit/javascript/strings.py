"""Texts put together from pieces: what they carry, and what their beginning rules out. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from casemate.agents.audit.facts.values import UNKNOWN, Value, clear, merge
from casemate.agents.audit.javascript.lexicon import ALL

_SQL = re.compile(
    r"\bselect\b[\s\S]*\bfrom\b|\binsert\s+(?:or\s+\w+\s+)?into\b|\bupdate\b[\s\S]*\bset\b|\bdelete\s+from\b"
    r"|^\s*(?:where|order\s+by|limit|and|or|union)\b|\b(?:drop|alter|create|truncate)\s+(?:table|database|user|view)\b"
    r"|\bwhere\s+[\w.\"`]+\s*(?:=|<|>|like\b|in\b)|\bcall\s+\w+\(",
    re.IGNORECASE,
)
_FIXED_HOST = re.compile(
    r"^(?:(?:https?:|wss?:)?//[^/?#\s]+[/?#]|/[^/\\]|[?#]|(?:mailto|tel|sms|ftp|data|blob):|\.{1,2}/)", re.IGNORECASE
)
_OPEN_HOST = re.compile(r"^(?:https?:|wss?:)?//[^/?#]*$|^/$|^$|^(?:https?|wss?)(?::/?)?$", re.IGNORECASE)
_MARKUP = re.compile(r"<[a-z!/]", re.IGNORECASE)
_ELSEWHERE = frozenset({"ssrf", "redirect"})
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
_ESCAPE = re.compile(r"\\(u\{[0-9a-fA-F]{1,6}\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r\n|[\s\S])")


def built(pieces: Sequence[Value]) -> Value:
    """A text made of several, in order: as dangerous as they all are, less what a fixed beginning rules out."""
    texts = [piece.constant for piece in pieces]
    if all(isinstance(text, str | int | float) and not isinstance(text, bool) for text in texts):
        whole = "".join(str(text) for text in texts)
        return Value(constant=whole, marks=marks_of(whole))
    first = next((piece for piece in pieces if piece.constant != ""), pieces[0])
    known = "".join(_known(text) for text in texts)
    ruled_out = _ruled_out(first)
    taints = [
        piece.everything() if piece is first else clear(piece.everything(), ruled_out | {"nosql", "mass"})
        for piece in pieces
    ]
    marks = {"built"} | marks_of(known) | (first.marks & {"own", "normal"})
    marks |= {mark for piece in pieces for mark in piece.marks & {"sql", "markup"}}
    return Value(taints=merge(*taints), marks=frozenset(marks))


def marks_of(text: str) -> frozenset[str]:
    """Whether a text reads like SQL (`sql`), like a page (`markup`)."""
    found = set()
    if len(text) > 3 and _SQL.search(text):
        found.add("sql")
    if _MARKUP.search(text):
        found.add("markup")
    return frozenset(found)


def unescaped(text: str) -> str:
    """A literal's text with its escapes read."""
    return _ESCAPE.sub(_read, text) if "\\" in text else text


def _read(match: re.Match[str]) -> str:
    escape = match.group(1)
    if len(escape) > 1 and escape[0] in "ux":
        number = int(escape.strip("ux{}"), 16)
        return chr(number) if number < 0x110000 else ""
    return _SIMPLE.get(escape, escape)


def _known(text: object) -> str:
    # A gap stands for what is not known, so that words on both sides of it stay apart.
    return text if isinstance(text, str) else " ? "


def _ruled_out(first: Value) -> frozenset[str]:
    if isinstance(first.constant, str):
        return _ELSEWHERE if _FIXED_HOST.match(first.constant) and not _OPEN_HOST.match(first.constant) else frozenset()
    own = "own" in first.marks
    live = any(not cleared & (ALL | _ELSEWHERE) for cleared in first.everything().values())
    return _ELSEWHERE if (first.constant is UNKNOWN and not live) or own else frozenset()
