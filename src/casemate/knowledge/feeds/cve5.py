"""CVE records in their own format, JSON 5 (https://cveproject.github.io/cve-schema/): one, a tree, lines, or a zip."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from casemate.errors import KnowledgeError
from casemate.knowledge.feeds import packed, whole
from casemate.knowledge.feeds.fields import Fields
from casemate.knowledge.node import Edge, EdgeKind, Kind, Node, Record, State

SOURCE = "CVE"

_RECORD = re.compile(r"CVE-\d{4}-\d{4,}\.json(\.gz)?", re.ASCII)
_LINES = re.compile(r"\.(jsonl|ndjson)(\.gz)?\Z", re.IGNORECASE)
_BEGINS = re.compile(r'"dataType"\s*:\s*"CVE_RECORD"|"cveMetadata"\s*:|\{\s*"containers"\s*:\s*\{\s*"(cna|adp)"')
_ID = re.compile(r"CVE-\d{4}-\d{4,}", re.ASCII)
_CWE = re.compile(r"CWE-[1-9]\d*\b", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_FORMAT = re.compile(r"5(\.|\Z)")
_STATES = {"PUBLISHED": State.LIVE, "REJECTED": State.REVOKED}
_DATES = ("dateUpdated", "dateRejected", "datePublished", "dateReserved")
_USUAL_RECORD_BYTES = 1 << 16
"""Tried first: to make room for the largest record each time takes longer than to unpack and parse a usual one."""
_MOST_RECORD_BYTES = 8 << 20
_MOST_UNPACKED_BYTES = 16 << 30
"""The whole list is a tenth of it."""


def recognises(path: Path) -> bool:
    """Whether a file begins like a record, or a folder or zip holds files that are named or begin so."""
    if path.is_dir():
        return any(_RECORD.fullmatch(file.name) or _BEGINS.search(packed.head(file)) for file in _files(path))
    if names := packed.names(path):
        return any(_RECORD.fullmatch(name.rpartition("/")[2]) for name in names)
    return bool(_BEGINS.search(packed.head(path)))


def read(path: Path) -> Iterator[Record]:
    """Every vulnerability, and the weaknesses that it is said to show; a rejected one is revoked and shows none.

    The version is the day of the newest change among all records: the format itself gives none to the whole.

    Raises:
        KnowledgeError: a record is damaged or in another format; names the file, and the line or id.
    """
    version = max((_changed(entry) for entry in _entries(path)), default="")
    if not version:
        raise KnowledgeError("holds no CVE record of format 5 with a date", where=str(path))
    for entry in _entries(path):
        yield from _records(entry, version)


def _records(entry: Fields, version: str) -> Iterator[Record]:
    metadata, containers = entry.part("cveMetadata"), entry.part("containers")
    id_, cna = metadata.line("cveId", _ID), containers.part("cna")
    state = _STATES.get(metadata.line("state"))
    if state is None:
        raise KnowledgeError(f"has an unknown state, {metadata.values['state']!r}", where=entry.where)
    texts = "descriptions" if state is State.LIVE else "rejectedReasons"
    name = cna.line("title") if cna.values.get("title") else id_
    yield Node(id_, Kind.VULNERABILITY, name, SOURCE, version, text=_english(cna, texts), state=state)
    if state is State.LIVE:
        for weakness in dict.fromkeys(_weaknesses(containers)):
            yield Edge(weakness, "observed-in", id_, EdgeKind.EVIDENCE, SOURCE, version, support=(id_,))


def _english(container: Fields, key: str) -> str:
    for said in container.entries(key):
        value = said.values.get("value")
        if str(said.values.get("lang", "")).lower().startswith("en") and isinstance(value, str):
            return " ".join(value.split())
    return ""


def _weaknesses(containers: Fields) -> Iterator[str]:
    """The weaknesses that the one who numbered it names, then those that others add."""
    every = (containers.part("cna"), *containers.entries("adp"))
    problems = (problem for container in every for problem in container.entries("problemTypes"))
    for said in (said for problem in problems for said in problem.entries("descriptions")):
        value = said.values.get("cweId") or said.values.get("description")
        if isinstance(value, str) and (match := _CWE.match(value)):
            yield match[0]


def _changed(entry: Fields) -> str:
    """The day of a record's last change, empty where it names none; that it is a record is checked on the way."""
    if not _FORMAT.match(str(entry.values.get("dataVersion"))) or entry.values.get("dataType") != "CVE_RECORD":
        raise KnowledgeError("is no CVE record of format 5", where=entry.where)
    metadata = entry.part("cveMetadata")
    dates = (metadata.values.get(key) for key in _DATES)
    return next((match[0] for date in dates if isinstance(date, str) and (match := _DATE.match(date))), "")


def _entries(path: Path) -> Iterator[Fields]:
    for file in _files(path) if path.is_dir() else (path,):
        for where, stream in packed.parts(file, _wanted, most_bytes=_MOST_UNPACKED_BYTES):
            yield from _of_stream(stream, where)


def _of_stream(stream: BinaryIO, where: str) -> Iterator[Fields]:
    """The one record of a stream, or one from each line."""
    if not _LINES.search(where):
        content = stream.read(_USUAL_RECORD_BYTES)
        if len(content) == _USUAL_RECORD_BYTES:
            content += stream.read(_MOST_RECORD_BYTES)
        yield _record(content, where, line=1)
        return
    for number, content in enumerate(iter(lambda: stream.readline(_MOST_RECORD_BYTES + 1), b""), 1):
        if content.strip():
            yield _record(content, where, line=number)


def _record(content: bytes, where: str, *, line: int) -> Fields:
    if len(content) > _MOST_RECORD_BYTES:
        raise KnowledgeError("is larger than any CVE record", where=f"{where}:{line}")
    values = whole.parsed(content, where, line=line).values
    metadata = values.get("cveMetadata")
    id_ = metadata.get("cveId") if isinstance(metadata, dict) else None
    return Fields(values, f"{where}:{line}" + (f", {id_}" if isinstance(id_, str) else ""))


def _files(folder: Path) -> tuple[Path, ...]:
    """The files of a tree that may hold records, in one order; links are not followed."""
    try:
        found = (file for file in folder.rglob("*") if _wanted(file.name) and not file.is_symlink() and file.is_file())
        return tuple(sorted(found))
    except OSError as error:
        raise packed.unreadable(folder, error) from error


def _wanted(name: str) -> bool:
    name = name.rpartition("/")[2]
    return bool(_RECORD.fullmatch(name) or _LINES.search(name))
