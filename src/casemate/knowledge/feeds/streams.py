"""Records of a large file, one at a time: memory stays flat, and what breaks is named by line."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET  # doctypes are refused below, so no entity is ever declared

from casemate.errors import KnowledgeError

_CHUNK_BYTES = 1 << 16
_MAX_OBJECT_CHARS = 1 << 20
_REMEDY = "fetch it again: casemate fetch"


def xml_records(path: Path, wanted: Collection[str]) -> Iterator[ET.Element]:
    """The root element with its attributes alone, then every wanted element, complete, without namespaces.

    Raises:
        KnowledgeError: the file cannot be read, is not well-formed, or declares a document type (entity bombs do).
    """
    catcher = _Catcher(path, wanted)
    parser = ET.XMLParser(target=catcher)  # noqa: S314 - the catcher refuses every document type
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                parser.feed(chunk)
                yield from catcher.take()
        parser.close()
    except ET.ParseError as error:
        raise KnowledgeError(f"not well-formed XML, {error}", where=str(path), remedy=_REMEDY) from error
    except OSError as error:
        raise unreadable(path, error) from error
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
        raise KnowledgeError(f"has no {key!r} object at its head", where=str(path), remedy=_REMEDY)
    try:
        value, _ = json.JSONDecoder().raw_decode(head, match.end())
    except json.JSONDecodeError as error:
        raise KnowledgeError(f"{key!r} is not JSON", where=f"{path}:{error.lineno}", remedy=_REMEDY) from error
    return dict(value)


def json_array(path: Path, key: str) -> Iterator[dict[str, Any]]:
    """The objects of the array under `key`, one at a time.

    Raises:
        KnowledgeError: the file cannot be read, or an object is damaged; names the line where it begins.
    """
    with _text(path) as chunks:
        reader = _ArrayReader(path, chunks)
        reader.enter(key)
        while (value := reader.next_object()) is not None:
            yield value


def unreadable(path: Path, error: OSError) -> KnowledgeError:
    """The one-line form of a file that cannot be opened."""
    return KnowledgeError(f"cannot be read: {error.strerror}", where=str(path), remedy=_REMEDY)


class _Catcher:
    """Target of an XML parser: builds wanted elements, drops all else."""

    def __init__(self, path: Path, wanted: Collection[str]) -> None:
        self._path = path
        self._wanted = frozenset(wanted)
        self._ready: deque[ET.Element] = deque()
        self._builder: ET.TreeBuilder | None = None
        self._depth = 0
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
        if self._builder is not None:
            self._depth += 1
            self._builder.start(tag, attributes)

    def data(self, text: str) -> None:
        if self._builder is not None:
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


class _ArrayReader:
    """Decodes one object after another from a growing and shrinking window of text."""

    def __init__(self, path: Path, chunks: Iterator[str]) -> None:
        self._path = path
        self._chunks = chunks
        self._window = ""
        self._line = 1
        self._decode = json.JSONDecoder().raw_decode

    def enter(self, key: str) -> None:
        """Move behind the bracket that opens the array."""
        opening = re.compile(rf'"{re.escape(key)}"\s*:\s*\[')
        while not (match := opening.search(self._window)):
            if len(self._window) > _MAX_OBJECT_CHARS or not self._grow():
                raise KnowledgeError(f"has no array {key!r}", where=str(self._path), remedy=_REMEDY)
        self._drop(match.end())

    def next_object(self) -> dict[str, Any] | None:
        """The next object; None behind the last."""
        self._skip_separators()
        if self._window.startswith("]"):
            return None
        while True:
            try:
                value, end = self._decode(self._window)
            except json.JSONDecodeError as error:
                if len(self._window) > _MAX_OBJECT_CHARS or not self._grow():
                    raise self._damaged() from error
                continue
            if not isinstance(value, dict):
                raise self._damaged()
            self._drop(end)
            return value

    def _skip_separators(self) -> None:
        while True:
            rest = self._window.lstrip(" \t\r\n,")
            self._drop(len(self._window) - len(rest))
            if self._window or not self._grow():
                return

    def _grow(self) -> bool:
        chunk = next(self._chunks, "")
        self._window += chunk
        return bool(chunk)

    def _drop(self, count: int) -> None:
        self._line += self._window.count("\n", 0, count)
        self._window = self._window[count:]

    def _damaged(self) -> KnowledgeError:
        return KnowledgeError("holds a damaged object", where=f"{self._path}:{self._line}", remedy=_REMEDY)


@contextmanager
def _text(path: Path) -> Iterator[Iterator[str]]:
    """Chunks of a UTF-8 file, which is closed at the end of the block."""
    try:
        with path.open(encoding="utf-8") as file:
            yield iter(lambda: file.read(_CHUNK_BYTES), "")
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise KnowledgeError("is not UTF-8 text", where=str(path), remedy=_REMEDY) from error
