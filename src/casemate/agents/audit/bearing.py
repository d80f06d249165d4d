"""What a weakness bears on beyond the code: clauses and the ATT&CK technique, and by what right we name them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import Literal

from casemate.agents.phrases import Language
from casemate.finding import Clause
from casemate.knowledge.curated.tables import names_zh, technique_rows
from casemate.knowledge.tsv import FACTS, listed, rows

Kind = Literal["curated", "official"]


@dataclass(frozen=True, slots=True)
class Basis:
    """Why a technique is named: our `reason`, and how many exploited CVEs of the weakness were used that way."""

    reason: str
    exploited: int


def clause_kind(clause: Clause) -> Kind:
    """OWASP lists the weaknesses of its risks itself; the relation to a law or standard is ours."""
    return "official" if clause.framework == "OWASP" else "curated"


def clause_title(clause: Clause, language: Language) -> str:
    """The clause's title in one language, where it is given in both (`English / Chinese`)."""
    english, _, chinese = clause.title.partition(" / ")
    return chinese or english if language == "zh" else english


@cache
def basis(cwe: str, technique: str) -> Basis:
    """By what right a technique stands beside a weakness."""
    reason = next((row.reason for row in technique_rows() if (row.cwe, row.technique) == (cwe, technique)), "")
    cves = _exploited()
    return Basis(reason, len(cves["weakness", cwe] & cves["technique", technique]))


def technique_name(technique: str, language: Language) -> str:
    """The official name of a technique, in Chinese the graph's own; empty where it is unknown."""
    return names_zh().get(technique, "") if language == "zh" else _technique_names().get(technique, "")


@cache
def _technique_names() -> dict[str, str]:
    return {row["id"]: row["name"] for row in rows(FACTS, "attack-19.1.tsv")}


@cache
def _exploited() -> dict[tuple[str, str], set[str]]:
    """The CVEs that are known to be exploited, by weakness (KEV) and by technique (CTID's mapping of KEV)."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in rows(FACTS, "kev-2025-08-25.tsv"):
        for cwe in listed(row["weaknesses"]):
            found["weakness", cwe].add(row["id"])
    for row in rows(FACTS, "ctid-kev-2025-07-28.tsv"):
        found["technique", row["technique"]].add(row["id"])
    return found
