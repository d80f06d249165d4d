"""A file that is small enough to be read whole: one JSON object, or a table; what breaks is named by line."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

from casemate.errors import KnowledgeError
from casemate.knowledge.feeds import packed
from casemate.knowledge.feeds.fields import Fields

MOST_BYTES = 64 << 20
"""No official file of these formats is a tenth as large."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def columns(path: Path) -> tuple[str, ...]:
    """The cells of a table's first line."""
    first, *_ = packed.head(path).splitlines() or [""]
    return tuple(next(csv.reader([first], delimiter=_delimiter(first)), ()))


def document(path: Path) -> Fields:
    """The one JSON object that a file is.

    Raises:
        KnowledgeError: the file cannot be read, is too large, or holds something else; names the line.
    """
    return parsed(_bytes(path), str(path))


def parsed(content: bytes, where: str, *, line: int = 1) -> Fields:
    """A JSON object out of its bytes.

    Raises:
        KnowledgeError: they are none; names the line, counted from the one where the object begins.
    """
    text = _decoded(content, where, line=line)
    try:
        value = json.loads(text)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise KnowledgeError(f"is not JSON: {error.msg}", where=f"{where}:{line + error.lineno - 1}") from error
    except (ValueError, RecursionError) as error:
        raise KnowledgeError("holds JSON that no official file holds", where=f"{where}:{line}") from error
    if not isinstance(value, dict):
        raise KnowledgeError("is no JSON object", where=f"{where}:{line}")
    return Fields(value, where)


def table(path: Path) -> Iterator[Fields]:
    """The rows of a table with a head line: tab-separated without quoting, or comma-separated.

    Raises:
        KnowledgeError: the file cannot be read, is too large, or a row has more or fewer cells than the head; names the
            line.
    """
    text = _decoded(_bytes(path), str(path))
    delimiter = _delimiter(text.partition("\n")[0])
    lines = io.StringIO(text, newline="")
    if delimiter == "\t":
        rows = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE, strict=True)
    else:
        rows = csv.reader(lines, strict=True)
    names: list[str] | None = None
    try:
        for row in rows:
            if names is None:
                names = row
            elif len(row) != len(names):
                raise KnowledgeError(f"a row has {len(row)} cells, not {len(names)}", where=f"{path}:{rows.line_num}")
            else:
                yield Fields(dict(zip(names, row, strict=True)), f"{path}:{rows.line_num}")
    except csv.Error as error:
        raise KnowledgeError(f"is no table: {error}", where=f"{path}:{rows.line_num}") from error


def _bytes(path: Path) -> bytes:
    with packed.opened(path, most_bytes=MOST_BYTES) as file:
        return file.read()


def _decoded(content: bytes, where: str, *, line: int = 1) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line += content.count(b"\n", 0, error.start)
        raise KnowledgeError("is not UTF-8 text", where=f"{where}:{line}") from error


def _delimiter(first: str) -> str:
    return "\t" if "\t" in first else ","
