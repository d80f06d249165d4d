"""The graph's SQLite file: schema, and the writer that fills it. `graph` reads it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from casemate.knowledge import words
from casemate.knowledge.node import Alias, Edge, Kind, Node, Record, State

SCHEMA_VERSION = "1"

SEARCHABLE = frozenset({Kind.WEAKNESS, Kind.TECHNIQUE, Kind.TACTIC, Kind.MITIGATION, Kind.RISK})
"""Kinds that text search returns; the others are found by id and along edges."""

_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE node (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, source TEXT NOT NULL, version TEXT NOT NULL,
    text TEXT NOT NULL, name_zh TEXT NOT NULL, state TEXT NOT NULL, abstraction TEXT NOT NULL, usage TEXT NOT NULL,
    advice TEXT NOT NULL
);
CREATE TABLE edge (
    start TEXT NOT NULL, relation TEXT NOT NULL, "end" TEXT NOT NULL, kind TEXT NOT NULL, source TEXT NOT NULL,
    version TEXT NOT NULL, support TEXT NOT NULL, note TEXT NOT NULL,
    PRIMARY KEY (start, relation, "end", kind, source)
) WITHOUT ROWID;
CREATE TABLE alias (
    folded TEXT NOT NULL, id TEXT NOT NULL, term TEXT NOT NULL, source TEXT NOT NULL, PRIMARY KEY (folded, id)
);
CREATE VIRTUAL TABLE passage USING fts5 (
    id UNINDEXED, name, text, aliases, pairs, examples, tokenize = 'porter unicode61'
);
"""

_INDEXES = """
CREATE INDEX edge_end ON edge ("end");
CREATE INDEX alias_id ON alias (id);
"""

_RANK = "bm25(0, 6.0, 1.0, 4.0, 4.0, 1.0)"
"""Weights of the passage table's columns: id, name, text, aliases, pairs, examples."""
_EXAMPLES = """
    SELECT node.text FROM edge JOIN node ON node.id = edge."end" WHERE start = ? AND relation = 'observed-in'
"""

_DROP_DANGLING = (
    'DELETE FROM edge WHERE start NOT IN (SELECT id FROM node) OR "end" NOT IN (SELECT id FROM node)',
    "DELETE FROM alias WHERE id NOT IN (SELECT id FROM node)",
)


class Writer:
    """Takes records in any order; `finish` drops what dangles, indexes, and seals the file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.executescript(_SCHEMA)

    def add(self, record: Record) -> None:
        """Store one record; of two with the same key the first wins."""
        match record:
            case Node():
                self._insert("node", record.id, record.kind, record.name, record.source, record.version, record.text,
                             record.name_zh, record.state, record.abstraction, record.usage, record.advice)  # fmt: skip
            case Edge():
                self._insert("edge", record.start, record.relation, record.end, record.kind, record.source,
                             record.version, ",".join(record.support), record.note)  # fmt: skip
            case Alias():
                self._insert("alias", words.fold(record.term), record.id, record.term, record.source)

    def finish(self, digest: str) -> tuple[int, int, int, int]:
        """Seal the file under the digest of its sources; gives the numbers of nodes, edges, aliases, drops."""
        dropped = sum(self._connection.execute(statement).rowcount for statement in _DROP_DANGLING)
        self._connection.executescript(_INDEXES)
        self._index()
        counts = tuple(
            self._connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - our own names
            for table in ("node", "edge", "alias")
        )
        nodes, edges, aliases = counts
        report = f"{nodes},{edges},{aliases},{dropped}"
        for key, value in (("schema", SCHEMA_VERSION), ("digest", digest), ("report", report)):
            self._insert("meta", key, value)
        self._connection.commit()
        self._connection.execute("VACUUM")
        return nodes, edges, aliases, dropped

    def _insert(self, table: str, *values: str) -> None:
        marks = ", ".join("?" * len(values))
        self._connection.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", values)  # noqa: S608 - our own names

    def _index(self) -> None:
        kinds = ", ".join(f"'{kind}'" for kind in sorted(SEARCHABLE))
        live = self._connection.execute(
            f"SELECT id, name, name_zh, text FROM node WHERE state = ? AND kind IN ({kinds})",  # noqa: S608 - our own words
            (State.LIVE,),
        ).fetchall()
        for id_, name, name_zh, text in live:
            terms = [row[0] for row in self._connection.execute("SELECT term FROM alias WHERE id = ?", (id_,))]
            pairs = " ".join(pair for term in (name_zh, *terms) for pair in words.pairs(term))
            examples = " ".join(row[0] for row in self._connection.execute(_EXAMPLES, (id_,)))
            self._insert("passage", id_, name, text, " ".join(terms), pairs, examples)
        self._connection.execute("INSERT INTO passage (passage) VALUES ('optimize')")
        self._connection.execute("INSERT INTO passage (passage, rank) VALUES ('rank', ?)", (_RANK,))


def report_of(path: Path, digest: str) -> tuple[int, int, int, int] | None:
    """The counts of the graph at `path` if it was sealed under `digest`; None if not, or if it is no graph."""
    if not path.is_file():
        return None
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            meta = dict(connection.execute("SELECT key, value FROM meta"))
    except sqlite3.DatabaseError:
        return None
    if meta.get("digest") != digest or meta.get("schema") != SCHEMA_VERSION:
        return None
    nodes, edges, aliases, dropped = map(int, meta["report"].split(","))
    return nodes, edges, aliases, dropped
