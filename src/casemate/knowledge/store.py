"""The graph's SQLite file: schema, and the writer that fills it. `graph` reads it."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from math import log1p
from pathlib import Path

from casemate.knowledge import joins, words
from casemate.knowledge.node import Alias, Edge, Kind, Node, Phrase, Record, State
from casemate.knowledge.postings import Postings

SCHEMA_VERSION = "3"

SEARCHABLE = frozenset({Kind.WEAKNESS, Kind.TECHNIQUE, Kind.TACTIC, Kind.MITIGATION, Kind.RISK, Kind.COUNTERMEASURE})
"""Kinds that text search returns; the others are found by id and along edges."""

_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE node (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, source TEXT NOT NULL, version TEXT NOT NULL,
    text TEXT NOT NULL, name_zh TEXT NOT NULL, state TEXT NOT NULL, abstraction TEXT NOT NULL, usage TEXT NOT NULL,
    advice TEXT NOT NULL, described TEXT NOT NULL
);
CREATE TABLE edition (
    id TEXT NOT NULL, source TEXT NOT NULL, version TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL,
    PRIMARY KEY (id, source, version)
) WITHOUT ROWID;
CREATE TABLE edge (
    start TEXT NOT NULL, relation TEXT NOT NULL, "end" TEXT NOT NULL, kind TEXT NOT NULL, source TEXT NOT NULL,
    version TEXT NOT NULL, support TEXT NOT NULL, note TEXT NOT NULL, former INTEGER NOT NULL,
    PRIMARY KEY (start, relation, "end", kind, source)
) WITHOUT ROWID;
CREATE TABLE alias (
    folded TEXT NOT NULL, id TEXT NOT NULL, term TEXT NOT NULL, source TEXT NOT NULL, PRIMARY KEY (folded, id)
);
CREATE TABLE phrase (id TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (id, text));
CREATE TABLE word (word TEXT PRIMARY KEY, nodes INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE document (place INTEGER PRIMARY KEY, id TEXT NOT NULL, renown REAL NOT NULL);
CREATE TABLE posting (term TEXT PRIMARY KEY, places BLOB NOT NULL, strengths BLOB NOT NULL) WITHOUT ROWID;
"""

_INDEXES = """
CREATE INDEX edge_end ON edge ("end");
CREATE INDEX alias_id ON alias (id);
"""

_NAME, _ALIAS, _SAID, _TEXT = 6.0, 4.0, 3.0, 1.0
"""How much a word counts in a node's name, in its other names, in what people say of it, in its text and examples."""
_MET = """
    SELECT count(*) * CASE relation WHEN 'detects' THEN 1.0 / 3 ELSE 1.0 END FROM edge
    WHERE (start = :id AND relation = 'observed-in' AND source = 'CISA KEV') OR ("end" = :id AND relation = 'detects')
    GROUP BY relation
"""
"""How often a node is met: exploited vulnerabilities of a weakness, detection rules of a technique (three to one)."""
_EXAMPLES = """
    SELECT node.text FROM edge JOIN node ON node.id = edge."end"
    WHERE start = ? AND relation = 'observed-in' AND edge.source = 'CWE'
"""

_DROP_DANGLING = (
    'DELETE FROM edge WHERE start NOT IN (SELECT id FROM node) OR "end" NOT IN (SELECT id FROM node)',
    "DELETE FROM alias WHERE id NOT IN (SELECT id FROM node)",
    "DELETE FROM phrase WHERE id NOT IN (SELECT id FROM node)",
)


class Writer:
    """Takes records in any order; `finish` joins, drops what dangles, indexes, and seals the file.

    Of two versions of a node the newer one's facts count; a text that only the older one has is kept and marked as its.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._nodes: dict[str, Node] = {}
        self._edges: dict[tuple[str, str, str, str, str], Edge] = {}
        connection.executescript(_SCHEMA)

    def add(self, record: Record) -> None:
        """Store one record. Of two with the same key the newer version counts; of equal versions the first."""
        match record:
            case Node():
                self._insert("edition", record.id, record.source, record.version, record.name, record.state)
                known = self._nodes.get(record.id)
                self._nodes[record.id] = record if known is None else _merged(known, record)
            case Edge():
                key = (record.start, record.relation, record.end, record.kind, record.source)
                twin = self._edges.get(key)
                if twin is None or recency(record.version) > recency(twin.version):
                    self._edges[key] = record
            case Alias():
                self._insert("alias", words.fold(record.term), record.id, record.term, record.source)
            case Phrase():
                self._insert("phrase", record.id, record.text)

    def finish(self, digest: str) -> tuple[int, int, int, int]:
        """Seal the file under the digest of its sources; gives the numbers of nodes, edges, aliases, drops."""
        nodes = joins.retired(self._nodes, recency)
        for node in nodes.values():
            self._insert("node", node.id, node.kind, node.name, node.source, node.version, node.text, node.name_zh,
                         node.state, node.abstraction, node.usage, node.advice, node.described)  # fmt: skip
        for edge in joins.joined(nodes, self._edges.values(), recency=recency):
            self._insert("edge", edge.start, edge.relation, edge.end, edge.kind, edge.source, edge.version,
                         ",".join(edge.support), edge.note, str(int(edge.former)))  # fmt: skip
        dropped = sum(self._connection.execute(statement).rowcount for statement in _DROP_DANGLING)
        self._connection.executescript(_INDEXES)
        self._index()
        return self._seal(digest, dropped)

    def _seal(self, digest: str, dropped: int) -> tuple[int, int, int, int]:
        nodes, edges, aliases = (
            self._connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - our own names
            for table in ("node", "edge", "alias")
        )
        report = f"{nodes},{edges},{aliases},{dropped}"
        for key, value in (("schema", SCHEMA_VERSION), ("digest", digest), ("report", report)):
            self._insert("meta", key, value)
        self._connection.commit()
        self._connection.execute("VACUUM")
        return nodes, edges, aliases, dropped

    def _insert(self, table: str, *values: str | float | bytes) -> None:
        marks = ", ".join("?" * len(values))
        self._connection.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", values)  # noqa: S608 - our own names

    def _index(self) -> None:
        kinds = ", ".join(f"'{kind}'" for kind in sorted(SEARCHABLE))
        live = self._connection.execute(
            f"SELECT id, name, name_zh, text FROM node WHERE state = ? AND kind IN ({kinds})",  # noqa: S608 - our own words
            (State.LIVE,),
        ).fetchall()
        used: Counter[str] = Counter()
        postings = Postings()
        for place, (id_, name, name_zh, text) in enumerate(live):
            aliases = self._column("SELECT term FROM alias WHERE id = ?", id_)
            said = self._column("SELECT text FROM phrase WHERE id = ?", id_)
            told = (text, *self._column(_EXAMPLES, id_))
            fields = ((_NAME, (name, name_zh)), (_ALIAS, aliases), (_SAID, said), (_TEXT, told))
            postings.add((weight, words.terms("\n".join(parts))) for weight, parts in fields)
            renown = log1p(sum(row[0] for row in self._connection.execute(_MET, {"id": id_})))
            self._insert("document", place, id_, renown)
            used.update({word for part in (name, text, *aliases, *said) for word in words.latin(part)})
        for row in postings.packed():
            self._insert("posting", *row)
        for word, count in sorted(used.items()):
            self._insert("word", word, count)

    def _column(self, statement: str, id_: str) -> list[str]:
        return [row[0] for row in self._connection.execute(statement, (id_,))]


def recency(version: str) -> tuple[int, ...]:
    """A version or date as what orders it: `4.19.1` is newer than `4.2`."""
    return tuple(map(int, re.findall(r"\d+", version)))


def report_of(path: Path, digest: str) -> tuple[int, int, int, int] | None:
    """The counts of the graph at `path` if it was sealed under `digest` and is whole; None if not."""
    if not path.is_file():
        return None
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            meta = dict(connection.execute("SELECT key, value FROM meta"))
            whole = connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    except sqlite3.DatabaseError:
        return None
    if not whole:
        return None
    if meta.get("digest") != digest or meta.get("schema") != SCHEMA_VERSION:
        return None
    nodes, edges, aliases, dropped = map(int, meta["report"].split(","))
    return nodes, edges, aliases, dropped


def _merged(known: Node, other: Node) -> Node:
    """One node of two that carry the same id: the newer one's facts, and the newest text.

    A text of a name that has no word in common with the newer one is of another thing, and is not lent.
    """
    newer, older = known, other
    unnamed = known.name == known.id != other.name
    if unnamed or (known.source == other.source and recency(other.version) > recency(known.version)):
        newer, older = other, known
    alike = older.name in (newer.name, older.id) or set(words.latin(newer.name)) & set(words.latin(older.name))
    told = max((newer, older), key=_telling) if alike else newer
    of = told.described or told.version
    return replace(
        newer,
        text=told.text,
        advice=told.advice or newer.advice,
        described=of if told.text and of != newer.version else "",
        name_zh=newer.name_zh or older.name_zh,
        abstraction=newer.abstraction or older.abstraction,
        usage=newer.usage or older.usage,
    )


def _telling(node: Node) -> tuple[bool, tuple[int, ...], int]:
    """Which of two texts to keep: the newest, of equal ones the longest."""
    return bool(node.text), recency(node.described or node.version), len(node.text)
