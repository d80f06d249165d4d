"""The graph, opened once and only read."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from casemate.errors import KnowledgeError
from casemate.knowledge import words
from casemate.knowledge.node import Edge, EdgeKind, Edition, Kind, Node, State
from casemate.knowledge.postings import Places, Strengths, unpacked
from casemate.knowledge.store import SCHEMA_VERSION, recency

_NODES = "SELECT id, kind, name, source, version, text, name_zh, state, abstraction, usage, advice, described FROM node"
_EDGES = 'SELECT start, relation, "end", kind, source, version, support, note, former FROM edge'
_EDITIONS = "SELECT source, version, name, state FROM edition WHERE id = ?"
_DANGLING = """
    SELECT count(*) FROM edge WHERE start NOT IN (SELECT id FROM node) OR "end" NOT IN (SELECT id FROM node)
"""
_KEPT = 4096
"""How many nodes and neighbourhoods stay in memory; the file never changes under an open graph."""
_ALIASES = """
    SELECT folded, id FROM alias JOIN node USING (id) WHERE state = 'live'
    ORDER BY alias.source = 'CWE', alias.rowid
"""
_NAMES = """
    SELECT name, id FROM node
    WHERE state = 'live' AND kind IN ('weakness', 'technique', 'risk') AND name LIKE '% %'
"""
_EVERY_NAME = """
    SELECT name, id FROM node WHERE state = 'live' AND kind NOT IN ('vulnerability', 'clause')
"""


@dataclass(frozen=True, slots=True)
class Census:
    """How much a graph holds: live nodes by kind, edges by kind, and the versions of each source, newest first."""

    nodes: dict[str, int]
    edges: dict[str, int]
    versions: dict[str, tuple[str, ...]]
    aliases: int
    dangling: int


class Graph:
    """Nodes by id, edges around them, names and passages to search in. Safe for reads from several threads.

    Use as a context manager, or `close` it.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._lock = Lock()
        self.node = lru_cache(_KEPT)(self._node)
        self.around = lru_cache(_KEPT)(self._around)

    @classmethod
    def open(cls, path: Path) -> Self:
        """The graph at `path`.

        Raises:
            KnowledgeError: it is not there, is no graph, or is of another edition of Casemate.
        """
        if not path.is_file():
            raise KnowledgeError("there is no graph", where=str(path), remedy="casemate kb build")
        address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"  # a built file is replaced, never written
        graph = cls(sqlite3.connect(address, uri=True, check_same_thread=False), path)
        try:
            schema = dict(graph.rows("SELECT key, value FROM meta")).get("schema")
        except KnowledgeError:
            graph.close()
            raise
        if schema != SCHEMA_VERSION:
            graph.close()
            raise KnowledgeError("the graph is of another edition", where=str(path), remedy="casemate kb build")
        return graph

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    @property
    def path(self) -> Path:
        """The file that was opened."""
        return self._path

    @property
    def digest(self) -> str:
        """A name for what the graph holds; equal sources and tables give equal digests."""
        return str(self.rows("SELECT value FROM meta WHERE key = 'digest'")[0][0])

    def _node(self, id_: str) -> Node | None:
        """The node of a canonical id; None if there is none."""
        rows = self.rows(_NODES + " WHERE id = ?", id_)
        return _node(rows[0]) if rows else None

    def nodes(self, kind: Kind) -> tuple[Node, ...]:
        """Every live node of a kind, in the order of its source."""
        rows = self.rows(_NODES + " WHERE kind = ? AND state = 'live' ORDER BY rowid", kind)
        return tuple(map(_node, rows))

    def _around(self, id_: str, relation: str = "", *, former: bool = False) -> tuple[Edge, ...]:
        """Edges that start or end at a node, of one relation or all; official ones first, then by support.

        Args:
            id_: the node.
            relation: what the edges say; all of them without.
            former: give the edges that newer versions no longer have, too.
        """
        every = _EDGES + ' WHERE (start = ? OR "end" = ?) AND former <= ?'
        values = (id_, id_, int(former))
        rows = self.rows(every + " AND relation = ?", *values, relation) if relation else self.rows(every, *values)
        return tuple(sorted(map(_edge, rows), key=_weight))

    def editions(self, id_: str) -> tuple[Edition, ...]:
        """What each version of each source says of a node, newest first."""
        rows = self.rows(_EDITIONS, id_)
        found = [Edition(id_, source, version, name, State(state)) for source, version, name, state in rows]
        return tuple(sorted(found, key=lambda edition: recency(edition.version), reverse=True))

    def phrases(self, id_: str) -> tuple[str, ...]:
        """Sentences that somebody may use for a node without knowing its name."""
        return tuple(row[0] for row in self.rows("SELECT text FROM phrase WHERE id = ? ORDER BY rowid", id_))

    def aliases(self, id_: str) -> tuple[str, ...]:
        """Other names of a node as they are written, the commonest of a source first."""
        return tuple(row[0] for row in self.rows("SELECT term FROM alias WHERE id = ? ORDER BY rowid", id_))

    @cached_property
    def terms(self) -> dict[str, tuple[str, ...]]:
        """What a question may call a node: every folded alias and name of two or more words → the live ids."""
        return _grouped([*self.rows(_ALIASES), *self.rows(_NAMES)])

    @cached_property
    def names(self) -> dict[str, tuple[str, ...]]:
        """What a citation may call a node: every folded alias and name → the live ids."""
        return _grouped([*self.rows(_ALIASES), *self.rows(_EVERY_NAME)])

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        """Every word of the searchable nodes → how many of them use it."""
        return dict(self.rows("SELECT word, nodes FROM word"))

    @cached_property
    def documents(self) -> tuple[tuple[str, ...], NDArray[np.float32]]:
        """The ids that text search may return, by place, and the renown of each.

        Renown is the logarithm of how often a node is met: by exploited vulnerabilities, by detection rules.
        """
        rows = self.rows("SELECT id, renown FROM document ORDER BY place")
        return tuple(row[0] for row in rows), np.array([row[1] for row in rows], dtype=np.float32)

    def postings(self, terms: Collection[str]) -> list[tuple[Places, Strengths]]:
        """For each term that is known: the places of the documents that hold it, and how strongly (BM25)."""
        marks = ", ".join("?" * len(terms))
        statement = f"SELECT places, strengths FROM posting WHERE term IN ({marks})"  # noqa: S608 - question marks only
        return [unpacked(*row) for row in self.rows(statement, *terms)]

    def census(self) -> Census:
        """How much the graph holds."""
        return Census(
            nodes=dict(Counter(row[0] for row in self.rows("SELECT kind FROM node WHERE state = 'live'"))),
            edges=dict(Counter(row[0] for row in self.rows("SELECT kind FROM edge"))),
            versions=_versions(self.rows("SELECT DISTINCT source, version FROM edition")),
            aliases=self.rows("SELECT count(*) FROM alias")[0][0],
            dangling=self.rows(_DANGLING)[0][0],
        )

    def rows(self, statement: str, *values: object) -> list[Any]:
        """The rows of a read-only statement.

        Raises:
            KnowledgeError: the file is damaged.
        """
        with self._lock, self._readable():
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise KnowledgeError(
                f"the graph cannot be read: {error}", where=str(self._path), remedy="casemate kb build"
            ) from error


_ORDER = {kind: place for place, kind in enumerate(EdgeKind)}


def _versions(pairs: list[Any]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for source, version in pairs:
        found.setdefault(source, []).append(version)
    return {source: tuple(sorted(versions, key=recency, reverse=True)) for source, versions in found.items()}


def _grouped(pairs: list[Any]) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for term, id_ in pairs:
        found.setdefault(words.fold(term), {})[id_] = None
    return {term: tuple(ids) for term, ids in found.items()}


def _node(row: Any) -> Node:
    id_, kind, name, source, version, text, name_zh, state, *rest = row
    return Node(id_, Kind(kind), name, source, version, text, name_zh, State(state), *rest)


def _weight(edge: Edge) -> tuple[int, int, str, str]:
    return _ORDER[edge.kind], -len(edge.support), edge.start, edge.end


def _edge(row: Any) -> Edge:
    start, relation, end, kind, source, version, support, note, former = row
    named = tuple(filter(None, support.split(",")))
    return Edge(start, relation, end, EdgeKind(kind), source, version, named, note, bool(former))
