"""The curated tables as graph records: clauses, patterns, techniques with their reasons and evidence, aliases."""

from __future__ import annotations

from collections.abc import Iterator

from casemate.knowledge.curated import tables
from casemate.knowledge.node import Alias, Edge, EdgeKind, Kind, Node, Record, State

CURATED = "curated"
_EDITION = "1"
_KEV = ("CISA KEV, CTID mappings", "2025-08-25, 2025-07-28")
_CAPEC = ("CAPEC", "3.9")


def read() -> Iterator[Record]:
    """Everything that our own tables add to the official sources."""
    yield from _patterns()
    yield from _clauses()
    for row in tables.technique_rows():
        yield Edge(row.cwe, "enables", row.technique, EdgeKind.CURATED, CURATED, _EDITION, note=row.reason)
    for counted in tables.evidence():
        yield from _evidence(counted)
    for term, id_ in tables.aliases():
        yield Alias(term, id_, CURATED)


def clause_id(framework: str, clause: str) -> str:
    """The graph's id of a clause: `GDPR Art. 25(1)`."""
    return f"{framework} {clause}"


def _patterns() -> Iterator[Node]:
    for id_, name, status in tables.patterns():
        state = State.DEPRECATED if status == "Deprecated" else State.LIVE
        yield Node(id_, Kind.PATTERN, name, *_CAPEC, state=state)


def _clauses() -> Iterator[Record]:
    for row in tables.clause_rows():
        id_ = clause_id(row.framework, row.id)
        version = tables.VERSIONS[row.framework]
        yield Node(id_, Kind.CLAUSE, row.title, row.framework, version, name_zh=row.title_zh)
        for cwe in row.weaknesses:
            yield Edge(cwe, "touches", id_, EdgeKind.CURATED, CURATED, _EDITION)


def _evidence(row: tables.EvidenceRow) -> Iterator[Record]:
    if row.cves:
        for cve in row.cves:
            yield Node(cve, Kind.VULNERABILITY, cve, *_KEV)
        counts = f"way in {row.exploitation}, first effect {row.primary_impact}, second effect {row.secondary_impact}"
        yield Edge(row.cwe, "enables", row.technique, EdgeKind.EVIDENCE, *_KEV, support=row.cves, note=counts)
    if row.capec_path:
        yield Edge(row.cwe, "enables", row.technique, EdgeKind.DERIVED, *_CAPEC, note=f"through {row.capec_path}")
