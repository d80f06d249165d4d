"""Typed rows of the curated tables. Works without any built graph; every table is read once.

| file | what | whose |
|---|---|---|
| aliases.tsv | names, acronyms and synonyms in Chinese and English | ours |
| glossary.tsv | words of a question, mostly Chinese, and the English words of the catalogues to search for | ours |
| clauses.tsv | clauses of GDPR, HIPAA, MLPS 2.0 level 3 and the weaknesses that touch them | ours |
| techniques.tsv | the ATT&CK technique that a weakness enables, with the reason | ours |
| successors.tsv | what took the place of a technique that ATT&CK dropped without a word, with the reason | ours |
| names-zh.tsv, frameworks-zh.tsv | Chinese names of weaknesses and techniques, of framework entries | ours |
| said.tsv | sentences by which people tell of a weakness or technique without its name | ours |
| bridges.tsv | requirements and controls that a weakness touches, with the reason | ours |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from casemate.finding import Clause
from casemate.knowledge.tsv import CURATED, FACTS, listed, rows

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
        ClauseRow(row["framework"], row["id"], row["title"], row["title_zh"], listed(row["weaknesses"]))
        for row in rows(CURATED, "clauses.tsv")
    )


@cache
def technique_rows() -> tuple[TechniqueRow, ...]:
    """Every curated step from a weakness to a technique."""
    return tuple(TechniqueRow(**row) for row in rows(CURATED, "techniques.tsv"))


@cache
def successors() -> tuple[tuple[str, str, str], ...]:
    """What left its catalogue without a word, what took its place, and why we say so."""
    return tuple((row["id"], row["successor"], row["reason"]) for row in rows(CURATED, "successors.tsv"))


def said() -> Iterator[tuple[str, str]]:
    """Pairs of an id and a sentence by which people tell of it."""
    return ((row["id"], row["text"]) for row in rows(CURATED, "said.tsv"))


@cache
def names_zh() -> dict[str, str]:
    """Chinese names: id → name."""
    tables = ("names-zh.tsv", "frameworks-zh.tsv")
    return {row["id"]: row["name_zh"] for table in tables for row in rows(CURATED, table)}


def bridges() -> Iterator[tuple[str, str, str]]:
    """Weakness, the requirement or control that it touches, and why."""
    return ((row["cwe"], row["id"], row["reason"]) for row in rows(CURATED, "bridges.tsv"))


def aliases() -> Iterator[tuple[str, str]]:
    """Pairs of a name and the id that it stands for."""
    return ((row["term"], row["id"]) for row in rows(CURATED, "aliases.tsv"))


@cache
def glossary() -> dict[str, str]:
    """Words of a question, folded → words of the catalogues to search for."""
    return {row["term"]: row["english"] for row in rows(CURATED, "glossary.tsv")}


@cache
def _clauses_by_weakness() -> dict[str, tuple[Clause, ...]]:
    found: dict[str, list[Clause]] = {}
    for row in clause_rows():
        for cwe in row.weaknesses:
            found.setdefault(cwe, []).append(Clause(row.framework, row.id, f"{row.title} / {row.title_zh}"))
    for risk in rows(FACTS, "owasp-2025.tsv"):
        for cwe in listed(risk["weaknesses"]):
            found.setdefault(cwe, []).append(Clause("OWASP", risk["id"], f"{risk['name']} / {risk['name_zh']}"))
    return {cwe: tuple(items) for cwe, items in found.items()}


@cache
def _technique_by_weakness() -> dict[str, str]:
    return {row.cwe: row.technique for row in technique_rows()}
