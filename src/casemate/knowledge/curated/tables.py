"""Typed rows of the curated tables. Works without any built graph; every table is read once.

| file | what | whose |
|---|---|---|
| aliases.tsv | names, acronyms and synonyms in Chinese and English | ours |
| glossary.tsv | words of a question, mostly Chinese, and the English words of the catalogues to search for | ours |
| clauses.tsv | clauses of GDPR, HIPAA, MLPS 2.0 level 3 and the weaknesses that touch them | ours |
| techniques.tsv | the ATT&CK technique that a weakness enables, with the reason | ours |
| tactics.tsv | ids and names of ATT&CK's tactics | MITRE's facts; Chinese names ours |
| owasp-2025.tsv | the risks of 2025 and their weaknesses | OWASP's facts; Chinese names ours |
| capec.tsv | ids and names of CAPEC 3.9 | MITRE's facts |
| evidence.tsv | weakness to technique, with the exploited CVEs behind it | counted from CISA KEV and CTID's maps |
| elsewhere.tsv | ids that exist only in another version of their catalogue | MITRE's facts |
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from casemate.finding import Clause

VERSIONS = {"GDPR": "(EU) 2016/679", "HIPAA": "45 CFR Part 164", "MLPS": "GB/T 22239-2019 level 3"}
"""The edition of each framework."""


@dataclass(frozen=True, slots=True)
class ClauseRow:
    """A clause and the weaknesses that touch it."""

    framework: str
    id: str
    title: str
    title_zh: str
    weaknesses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TechniqueRow:
    """A technique that a weakness enables, and why we say so."""

    cwe: str
    technique: str
    reason: str


@dataclass(frozen=True, slots=True)
class TacticRow:
    """A tactic by its id, name and the short name that STIX uses."""

    id: str
    name: str
    shortname: str
    name_zh: str


@dataclass(frozen=True, slots=True)
class RiskRow:
    """A risk of the OWASP Top 10 and its weaknesses."""

    id: str
    name: str
    name_zh: str
    weaknesses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """How often exploited vulnerabilities of a weakness were seen with a technique.

    `exploitation`, `primary_impact` and `secondary_impact` count the vulnerabilities in which the technique was the way
    in, the first, or the second effect; `cves` names them all; `capec_path` names the patterns that link the two.
    """

    cwe: str
    technique: str
    exploitation: int
    primary_impact: int
    secondary_impact: int
    cves: tuple[str, ...]
    capec_path: str


def clauses(cwe: str) -> tuple[Clause, ...]:
    """The clauses that a weakness touches: GDPR, HIPAA, MLPS, then its OWASP risk of 2025. Titles in both languages."""
    return _clauses_by_weakness().get(cwe, ())


def technique(cwe: str) -> str:
    """The ATT&CK id that a weakness enables; empty where we say nothing."""
    return _technique_by_weakness().get(cwe, "")


@cache
def clause_rows() -> tuple[ClauseRow, ...]:
    """Every clause of the table."""
    return tuple(
        ClauseRow(row["framework"], row["id"], row["title"], row["title_zh"], _list(row["weaknesses"]))
        for row in _rows("clauses.tsv")
    )


@cache
def technique_rows() -> tuple[TechniqueRow, ...]:
    """Every curated step from a weakness to a technique."""
    return tuple(TechniqueRow(**row) for row in _rows("techniques.tsv"))


@cache
def tactics() -> tuple[TacticRow, ...]:
    """The tactics in ATT&CK's own order."""
    return tuple(TacticRow(**row) for row in _rows("tactics.tsv"))


@cache
def risks() -> tuple[RiskRow, ...]:
    """The OWASP Top 10 of 2025."""
    return tuple(
        RiskRow(row["id"], row["name"], row["name_zh"], _list(row["weaknesses"])) for row in _rows("owasp-2025.tsv")
    )


def evidence() -> Iterator[EvidenceRow]:
    """Every counted step from a weakness to a technique."""
    for row in _rows("evidence.tsv"):
        yield EvidenceRow(
            row["cwe"],
            row["technique"],
            int(row["exploitation"]),
            int(row["primary_impact"]),
            int(row["secondary_impact"]),
            _list(row["cves"]),
            row["capec_path"],
        )


def aliases() -> Iterator[tuple[str, str]]:
    """Pairs of a name and the id that it stands for."""
    return ((row["term"], row["id"]) for row in _rows("aliases.tsv"))


def patterns() -> Iterator[tuple[str, str, str]]:
    """Id, name and status of every CAPEC attack pattern."""
    return ((row["id"], row["name"], row["status"]) for row in _rows("capec.tsv"))


@cache
def elsewhere() -> dict[str, tuple[str, str]]:
    """Ids that only another version of their catalogue has: id → (name, `CWE 4.19.1`)."""
    return {row["id"]: (row["name"], f"{row['source']} {row['version']}") for row in _rows("elsewhere.tsv")}


@cache
def glossary() -> dict[str, str]:
    """Words of a question, folded → words of the catalogues to search for."""
    return {row["term"]: row["english"] for row in _rows("glossary.tsv")}


@cache
def _clauses_by_weakness() -> dict[str, tuple[Clause, ...]]:
    found: dict[str, list[Clause]] = {}
    for row in clause_rows():
        for cwe in row.weaknesses:
            found.setdefault(cwe, []).append(Clause(row.framework, row.id, f"{row.title} / {row.title_zh}"))
    for risk in risks():
        for cwe in risk.weaknesses:
            found.setdefault(cwe, []).append(Clause("OWASP", risk.id, f"{risk.name} / {risk.name_zh}"))
    return {cwe: tuple(items) for cwe, items in found.items()}


@cache
def _technique_by_weakness() -> dict[str, str]:
    return {row.cwe: row.technique for row in technique_rows()}


def _rows(name: str) -> Iterator[dict[str, str]]:
    text = (resources.files("casemate.knowledge.curated") / name).read_text(encoding="utf-8")
    yield from csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)


def _list(cell: str) -> tuple[str, ...]:
    return tuple(cell.split(",")) if cell else ()
