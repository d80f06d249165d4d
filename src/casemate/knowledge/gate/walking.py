"""Walks JSON, JSON Lines and SARIF token by token, so that every value keeps its place in the file. Pure.

The stack is our own: depth and size are bounded by memory alone. What is no JSON after all is told by None.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace

from casemate.knowledge.gate.layout import MOST_FIELDS, Field, Row
from casemate.knowledge.gate.mentions import Mention

_STRING = r'"(?P<string>[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*)"'
_TOKEN = re.compile(
    rf"[ \t\r\n]*(?:{_STRING}|(?P<mark>[{{}}\[\],:])|(?P<number>-?\d[\d.eE+-]*)|(?P<word>true|false|null))"
)
_SPACE = re.compile(r"[ \t\r\n]*")
_LISTS = (
    (
        "CWE",
        re.compile(
            r"(?:issue[_-]?|primary[_-]?|mapped[_-]?)?cwes?(?:[_-]?(?:ids?|numbers?|nums?|list))?", re.IGNORECASE
        ),
    ),
    ("CAPEC", re.compile(r"capecs?(?:[_-]?(?:ids?|numbers?))?", re.IGNORECASE)),
)
_MAY_BE_ID = re.compile(r"[A-Za-z][A-Za-z0-9./:_-]{2,24}(?<=\d)")
_HOPS = 3
"""How far above a number its list may be named: entry, list of entries, taxonomy."""
_NUMBER = re.compile(r"0{0,4}(?P<number>[1-9]\d{0,6})\Z")
_ID_KEYS = frozenset(("id", "externalid", "external_id", "identifier", "guid"))
_PARTS_OF_A_PLACE = frozenset(("artifactLocation", "region", "snippet"))
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}(?:\\u[dD][c-fC-F][0-9a-fA-F]{2})?|.)")


@dataclass(slots=True)
class _Frame:
    """An object or list that is open."""

    is_object: bool
    key: str
    hint: str
    fields: list[Field] = field(default_factory=list)
    numbers: list[tuple[str, int, int, int]] = field(default_factory=list)
    name: str = ""
    of: str = ""
    next_key: str = ""
    next_field: Field | None = None


@dataclass(slots=True)
class Walk:
    """What was read: values that may hold identifiers, numbers that are identifiers, and the rows that objects make."""

    values: list[tuple[str, int, int]] = field(default_factory=list)
    numbers: list[Mention] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)


def is_json(text: str) -> bool:
    """Whether a text begins as JSON does."""
    start = _SPACE.match(text, 1 if text[:1] == "\ufeff" else 0)
    return bool(start) and text[start.end() : start.end() + 1] in ("{", "[") if start else False


def walk(text: str) -> Walk | None:
    """What a JSON text holds; None if it is no JSON."""
    read = Walk()
    stack: list[_Frame] = []
    at = 1 if text[:1] == "\ufeff" else 0
    while token := _TOKEN.match(text, at):
        at = token.end()
        mark = token["mark"]
        if mark in ("{", "["):
            stack.append(_opened(stack, is_object=mark == "{"))
        elif not stack:
            return None
        elif mark is None:
            _value(stack[-1], token, walk=read)
        elif mark in ("}", "]"):
            if stack[-1].is_object != (mark == "}"):
                return None
            _close(stack, read)
        elif mark == "," and stack[-1].is_object:
            stack[-1].next_key, stack[-1].next_field = "", None
    rest = _SPACE.match(text, at)
    read.numbers.sort(key=lambda mention: mention.start)
    return read if rest and rest.end() == len(text) and not stack else None


def _opened(stack: list[_Frame], *, is_object: bool) -> _Frame:
    """A new frame; it takes its key and the list that numbers in it belong to from where it stands."""
    if not stack:
        return _Frame(is_object, "", "")
    above = stack[-1]
    key = above.next_key if above.is_object else above.key
    hint = _list_of(key) or ("" if above.is_object else above.hint)
    return _Frame(is_object, key, hint)


def _value(frame: _Frame, token: re.Match[str], *, walk: Walk) -> None:
    kind = token.lastgroup or "string"
    start, end = token.span(kind)
    raw = token[kind]
    if frame.is_object and not frame.next_key:
        if kind == "string":
            _key(frame, Field("key", raw, start, end), walk=walk)
        return
    key = frame.next_key if frame.is_object else frame.key
    if kind == "word":
        return
    _number(frame, Field(key, raw, start, end), walk=walk, bare=kind == "number")
    if kind == "string":
        walk.values.append((key, start, end))
    text = unescaped(raw)[0] if "\\" in raw else raw
    if len(frame.fields) < MOST_FIELDS:
        frame.fields.append(Field(key, text, start, end))
    if frame.next_field is not None:
        walk.rows.append((frame.next_field, Field("name", text, start, end)))
    if key == "name":
        frame.name = text


def _key(frame: _Frame, key: Field, *, walk: Walk) -> None:
    """A key of an object; it may be an identifier itself: `{"CWE-89": "SQL Injection"}`."""
    frame.next_key = key.text or " "
    if _MAY_BE_ID.fullmatch(key.text):
        walk.values.append(("", key.start, key.end))
        frame.next_field = key


def _number(frame: _Frame, value: Field, *, walk: Walk, bare: bool) -> None:
    """A number that is an identifier because of its key, or may turn out to be one when its list is named."""
    number = _NUMBER.match(value.text)
    if number is None:
        return
    is_id = value.label.casefold() in _ID_KEYS
    hint = _list_of(value.label) or (frame.hint if is_id or not frame.is_object else "")
    if hint:
        walk.numbers.append(Mention(f"{hint}-{number['number']}", value.start, value.end))
    elif is_id and not bare:
        frame.numbers.append((number["number"], value.start, value.end, 0))


def _lifted(frame: _Frame) -> list[Field]:
    """What an object inside another tells of it: its identifier, and in SARIF the file, line and words of a place."""
    if frame.key in _PARTS_OF_A_PLACE:
        return [replace(one, label=frame.key) if one.label == "text" else one for one in frame.fields]
    named = frame.key == "toolComponent"  # the list that an identifier is of
    return [
        replace(one, label=frame.key)
        for one in frame.fields
        if frame.key and (one.label.casefold() in _ID_KEYS or (named and one.label == "name"))
    ]


def _list_of(key: str) -> str:
    return next((name for name, pattern in _LISTS if pattern.fullmatch(key)), "")


def _close(stack: list[_Frame], walk: Walk) -> None:
    """Make a row of a finished object, and settle what its numbers mean: SARIF names the list after or above them."""
    frame = stack.pop()
    above = stack[-1] if stack else None
    list_ = frame.of or frame.name
    named = list_ if list_ in ("CWE", "CAPEC") else ""
    if frame.is_object and frame.key == "toolComponent" and above is not None:
        above.of = frame.name
    for number, start, end, _ in frame.numbers if frame.is_object and named else ():
        walk.numbers.append(Mention(f"{named}-{number}", start, end))
    if frame.is_object and len(frame.fields) > 1:
        walk.rows.append(tuple(frame.fields))
    if above is None:
        return
    if not (frame.is_object and named):
        above.numbers.extend((one, start, end, hops + 1) for one, start, end, hops in frame.numbers if hops < _HOPS)
    room = MOST_FIELDS - len(above.fields)
    if not frame.is_object:
        above.fields.extend(frame.fields[:room])
    else:
        above.fields.extend(_lifted(frame)[: max(0, room)] if above.is_object else ())
    if above.is_object and not frame.is_object:
        above.next_key = above.next_key or " "


def unescaped(raw: str) -> tuple[str, list[int]]:
    """A value as it reads, and for each character of it, and its end, the place in the file."""
    parts: list[str] = []
    places: list[int] = []
    at = 0
    for escape in _ESCAPE.finditer(raw):
        parts.append(raw[at : escape.start()])
        places.extend(range(at, escape.start()))
        plain = _plain(escape.group())
        parts.append(plain)
        places.extend([escape.start()] * len(plain))
        at = escape.end()
    parts.append(raw[at:])
    places.extend(range(at, len(raw) + 1))
    return "".join(parts), places


def _plain(escape: str) -> str:
    try:
        return str(json.loads(f'"{escape}"'))
    except ValueError:
        return escape[1:]
