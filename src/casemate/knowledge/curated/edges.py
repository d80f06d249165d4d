"""The curated tables as graph records: clauses and techniques with their reasons, successors, names, dossiers."""

from __future__ import annotations

from collections.abc import Iterator

from casemate.knowledge.curated import dossiers, tables
from casemate.knowledge.node import Alias, Edge, EdgeKind, Kind, Node, Phrase, Record

CURATED = "curated"
_EDITION = "1"


def read() -> Iterator[Record]:
    """Everything that our own tables add to the official sources."""
    yield from _clauses()
    for step in tables.technique_rows():
        yield Edge(step.cwe, "enables", step.technique, EdgeKind.CURATED, CURATED, _EDITION, note=step.reason)
    for cwe, id_, reason in tables.bridges():
        yield Edge(cwe, "touches", id_, EdgeKind.CURATED, CURATED, _EDITION, note=reason)
    for left, successor, reason in tables.successors():
        yield Edge(left, "replaced-by", successor, EdgeKind.CURATED, CURATED, _EDITION, note=reason)
    for term, id_ in tables.aliases():
        yield Alias(term, id_, CURATED)
    for id_, name in tables.names_zh().items():
        yield Alias(name, id_, CURATED)
    for id_, text in tables.said():
        yield Phrase(id_, text)
    for dossier in dossiers.every():
        yield from _dossier(dossier)


def clause_id(framework: str, clause: str) -> str:
    """The graph's id of a clause: `GDPR Art. 25(1)`."""
    return f"{framework} {clause}"


def _clauses() -> Iterator[Record]:
    for row in tables.clause_rows():
        id_ = clause_id(row.framework, row.id)
        version = tables.VERSIONS[row.framework]
        yield Node(id_, Kind.CLAUSE, row.title, row.framework, version, name_zh=row.title_zh)
        for cwe in row.weaknesses:
            yield Edge(cwe, "touches", id_, EdgeKind.CURATED, CURATED, _EDITION)


def _dossier(dossier: dossiers.Dossier) -> Iterator[Record]:
    for half in (dossier.zh, dossier.en):
        for term in half.aliases:
            yield Alias(term, dossier.cwe, CURATED)
        for text in (*half.symptoms, half.description, *half.triggers):
            yield Phrase(dossier.cwe, text)
    for cve in dossier.cves:
        yield Node(cve.id, Kind.VULNERABILITY, cve.id, CURATED, _EDITION, text=cve.what_en)
        yield Edge(dossier.cwe, "observed-in", cve.id, EdgeKind.CURATED, CURATED, _EDITION, support=(cve.id,))
