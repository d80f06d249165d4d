"""Records of a large file, one at a time: memory stays flat, and what breaks is named by line."""

from __future__ import annotations

import io
import json
import re
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET  # doctypes are refused below, so no entity is ever declared

from casemate.errors import KnowledgeError
from casemate.knowledge.feeds import packed
from casemate.knowledge.feeds.window import CHUNK, MAX_CHARS, Window


def xml_records(path: Path, wanted: Collection[str]) -> Iterator[ET.Element]:
    """The root element with its attributes alone, then every wanted element, complete, without namespaces.

    Raises:
        KnowledgeError: the file cannot be read, is not well-formed, or declares a document type (entity bombs do).
    """
    catcher = _Catcher(path, wanted)
    parser = ET.XMLParser(target=catcher)  # noqa: S314 - the catcher refuses every document type
    try:
        with packed.opened(path, suffix=".xml") as file:
            while chunk := file.read(CHUNK):
                parser.feed(chunk)
                yield from catcher.take()
        parser.close()
    except (ET.ParseError, LookupError, ValueError) as error:  # the latter two: an encoding that nobody knows
        raise KnowledgeError(f"not well-formed XML, {error}", where=str(path), remedy=packed.REMEDY) from error
    yield from catcher.take()


def json_head(path: Path, key: str) -> dict[str, Any]:
    """The object under `key`, which must begin in the first 64 KiB.

    Raises:
        KnowledgeError: the file cannot be read, or has no such object there.
    """
    with _text(path) as chunks:
        head = next(chunks, "")
    match = re.search(rf'"{re.escape(key)}"\s*:\s*(?={{)', head)
    if not match:
        raise KnowledgeError(f"has no {key!r} object at its head", where=str(path), remedy=packed.REMEDY)
    try:
        value, _ = json.JSONDecoder().raw_decode(head, match.end())
    except (ValueError, RecursionError) as error:
        raise KnowledgeError(f"{key!r} is not JSON", where=str(path), remedy=packed.REMEDY) from error
    return dict(value)


def json_array(path: Path, key: str) -> Iterator[dict[str, Any]]:
    """The objects of the array under `key`, one at a time.

    Raises:
        KnowledgeError: the file cannot be read, has no object there, or one is damaged; names the line where it begins.
    """
    empty = True
    for name, value in json_records(path, {key}):
        if name == key:
            empty = False
            yield value
    if empty:
        raise KnowledgeError(f"has no objects in an array {key!r}", where=str(path), remedy=packed.REMEDY)


def json_records(path: Path, keys: Collection[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of a JSON file of any layout, one at a time, with the key of the array that it stands in.

    The file is one object, one array, or lines of objects. In an object, the arrays under `keys` are read one object
    at a time; what else it has follows as one object under the key `""`, as do the objects of the other layouts.

    Raises:
        KnowledgeError: the file cannot be read, or an object is damaged; names the line where it begins.
    """
    with _text(path) as chunks:
        window = Window(path, chunks)
        while opening := window.peek():
            if opening == "[":
                yield from (("", value) for value in _elements(window))
            elif opening == "{":
                short = window.at_hand(without=keys)
                yield from _members(window, keys) if short is None else (("", short),)
            else:
                raise window.damaged()


def _elements(window: Window) -> Iterator[dict[str, Any]]:
    window.take("[")
    separator = window.take("]") if window.peek() == "]" else ","
    while separator == ",":
        if window.peek() != "{":
            raise window.damaged()
        yield window.value()
        separator = window.take(",]")


def _members(window: Window, keys: Collection[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    start, streamed = window.taken, 0
    rest = window.begin()
    window.take("{")
    separator = window.take("}") if window.peek() == "}" else ","
    while separator == ",":
        key = window.name()
        if key in keys and window.peek() == "[":
            before, began = window.taken, window.end()
            yield from ((key, value) for value in _elements(window))
            window.begin(rest, line=began)
            streamed += window.taken - before
        else:
            rest[key] = window.value()
        if window.taken - start - streamed > MAX_CHARS:
            raise window.damaged()
        separator = window.take(",}")
    window.end()
    if rest or not streamed:
        yield "", rest


class _Catcher:
    """Target of an XML parser: builds wanted elements, drops all else."""

    def __init__(self, path: Path, wanted: Collection[str]) -> None:
        self._path = path
        self._wanted = frozenset(wanted)
        self._ready: deque[ET.Element] = deque()
        self._builder: ET.TreeBuilder | None = None
        self._depth = 0
        self._chars = 0
        self._begun = False

    def take(self) -> Iterator[ET.Element]:
        while self._ready:
            yield self._ready.popleft()

    def doctype(self, name: str, _public: str | None, _system: str | None) -> None:
        raise KnowledgeError(f"declares a document type {name!r}, which no official file does", where=str(self._path))

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition("}")[2]
        if not self._begun:
            self._begun = True
            self._ready.append(ET.Element(tag, attributes))
        elif self._builder is None and tag in self._wanted:
            self._builder = ET.TreeBuilder()
            self._chars = 0
        if self._builder is not None:
            self._depth += 1
            self._weigh(len(tag))
            self._builder.start(tag, attributes)

    def data(self, text: str) -> None:
        if self._builder is not None:
            self._weigh(len(text))
            self._builder.data(text)

    def end(self, tag: str) -> None:
        if self._builder is None:
            return
        self._builder.end(tag.rpartition("}")[2])
        self._depth -= 1
        if self._depth == 0:
            self._ready.append(self._builder.close())
            self._builder = None

    def close(self) -> None:
        """Nothing is left to build: the parser itself has checked that every element ended."""

    def _weigh(self, chars: int) -> None:
        self._chars += chars
        if self._chars > MAX_CHARS:
            raise KnowledgeError("holds an entry that is larger than any official one", where=str(self._path))


@contextmanager
def _text(path: Path) -> Iterator[Iterator[str]]:
    """Chunks of a UTF-8 file, which is closed at the end of the block."""
    try:
        with packed.opened(path, suffix=".json") as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig")
            yield iter(lambda: text.read(CHUNK), "")
    except UnicodeDecodeError as error:
        raise KnowledgeError("is not UTF-8 text", where=str(path), remedy=packed.REMEDY) from error
