"""Reads the rows of tables that stand in plain text: Markdown tables anywhere, and a text that is CSV or TSV. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE = re.compile(r"[^\n]*\n?")
_PIPED = re.compile(r"^[ \t>]*\|.*\|[ \t]*\r?$", re.MULTILINE)
_RULE = re.compile(r"^[ \t>]*\|?[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-{2,}:?[ \t]*)*\|?[ \t]*\r?$", re.MULTILINE)
_CELL = re.compile(r"(?:\\.|[^|\\\n])*")
_LABEL = re.compile(
    r"cwe|capec|cve|att&?ck|mitre|technique|tactic|owasp|gdpr|hipaa|mlps|nist|clause|control|weakness|rule|\bid\b|\bfile\b|\bquote\b|名称|文件|原文|编号|弱点|技术|战术|条款",
    re.IGNORECASE,
)
_ID_ALONE = re.compile(r"\s*\"?(?:CWE-\d+|CAPEC-\d+|T\d{4}(?:\.\d{3})?|TA\d{4}|A\d\d?:20\d\d)\"?\s*\Z", re.IGNORECASE)
_LONGEST_LABEL = 48
_DELIMITERS = ",\t;"
_PROBED = 3
MOST_FIELDS = 200
"""More values than a record has; what holds more is data."""


@dataclass(frozen=True, slots=True)
class Field:
    """A cell or a value: under which label it stands, its words, and the span that they take."""

    label: str
    text: str
    start: int
    end: int


Row = tuple[Field, ...]


def rows(text: str) -> Iterator[Row]:
    """Every row of every table in a text; a column without a heading has an empty label."""
    if "|" in text and (_RULE.search(text) or _PIPED.search(text)):
        yield from _markdown(text)
    delimiter = _delimiter(text)
    if delimiter:
        yield from _separated(text, delimiter)


def _markdown(text: str) -> Iterator[Row]:
    labels: list[str] | None = None
    waiting: list[tuple[int, int]] | None = None  # a line that may turn out to be a heading
    at = 0
    while at < len(text):
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        cells = _cells(text, at, stop=stop)
        if len(cells) < 2:
            if waiting is not None:
                yield _row(text, waiting, labels=[])
            labels, waiting = None, None
        elif labels is None and waiting is not None and _RULE.fullmatch(text, at, stop):
            labels, waiting = [text[start:end].strip() for start, end in waiting], None
        elif labels is None:
            if waiting is not None:
                yield _row(text, waiting, labels=[])
            waiting = cells
        else:
            yield _row(text, cells, labels=labels)
        at = stop + 1
    if waiting is not None:
        yield _row(text, waiting, labels=[])


def _cells(text: str, start: int, *, stop: int) -> list[tuple[int, int]]:
    """The spans between the bars of a line."""
    if text.find("|", start, stop) < 0:
        return []
    spans: list[tuple[int, int]] = []
    at = start
    while at <= stop and len(spans) <= MOST_FIELDS:
        match = _CELL.match(text, at, stop)
        end = match.end() if match else at
        spans.append((at, end))
        at = end + 1
    if not text[spans[0][0] : spans[0][1]].strip(" \t>"):
        spans = spans[1:]
    if spans and not text[spans[-1][0] : spans[-1][1]].strip():
        spans = spans[:-1]
    return spans


def _row(text: str, cells: list[tuple[int, int]], *, labels: list[str]) -> Row:
    return tuple(
        _field(labels[place] if place < len(labels) else "", text, start=start, end=end)
        for place, (start, end) in enumerate(cells)
    )


def _field(label: str, text: str, *, start: int, end: int) -> Field:
    words = text[start:end]
    left = len(words) - len(words.lstrip(" \t*_`\"'"))
    right = len(words.rstrip(" \t\r*_`\"'"))
    return Field(label.strip(' *_`"'), words[left:right], start + left, start + max(left, right))


def _delimiter(text: str) -> str:
    """What parts the columns of a text that is CSV or TSV; empty for any other text."""
    lines: list[str] = []
    at = 0
    while len(lines) < _PROBED and at < len(text):
        match = _LINE.match(text, at)
        if match is None or not match.group():
            break
        at = match.end()
        if match.group().strip():
            lines.append(match.group().rstrip("\r\n"))
    if len(lines) < 2 or max(map(len, lines)) > 100_000:
        return ""
    for delimiter in _DELIMITERS:
        split = [[line[start:end] for start, end in _split(line, delimiter)] for line in lines]
        if len(split[0]) < 2 or any(len(row) != len(split[0]) for row in split):
            continue
        named = all(len(cell) <= _LONGEST_LABEL for cell in split[0]) and _LABEL.search(" ".join(split[0]))
        if named or all(any(_ID_ALONE.match(cell) for cell in row) for row in split):
            return delimiter
    return ""


def _split(line: str, delimiter: str) -> list[tuple[int, int]]:
    return [(start, end) for start, end, _ in _values(line, delimiter)]


def _values(text: str, delimiter: str) -> Iterator[tuple[int, int, bool]]:
    """The spans of the values, and whether each is the last of its row; quotes may hold anything."""
    pattern = re.compile(rf'[ ]*"((?:[^"]|"")*)"[ ]*(?=[{delimiter}\r\n]|\Z)|([^{delimiter}\r\n]*)')
    at = 0
    while at <= len(text):
        match = pattern.match(text, at)
        if match is None:
            return
        group = 1 if match[1] is not None else 2
        end = match.end()
        last = text[end : end + 1] != delimiter
        yield match.start(group), match.end(group), last
        if end >= len(text):
            return
        at = end + (2 if text[end : end + 2] == "\r\n" else 1)


def _separated(text: str, delimiter: str) -> Iterator[Row]:
    cells: list[tuple[int, int]] = []
    labels: list[str] | None = None
    for start, end, last in _values(text, delimiter):
        cells.append((start, end))
        if not last:
            continue
        if labels is None:
            named = [text[left:right] for left, right in cells]
            labels = [] if any(_ID_ALONE.match(cell) for cell in named) else named
            if not labels:
                yield _row(text, cells, labels=labels)
        elif len(cells) > 1:
            yield _row(text, cells, labels=labels)
        cells = []
