"""The words of the graph: Node, Edge, Alias, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a node is."""

    WEAKNESS = "weakness"
    CATEGORY = "category"
    VIEW = "view"
    PATTERN = "pattern"
    VULNERABILITY = "vulnerability"
    TECHNIQUE = "technique"
    TACTIC = "tactic"
    MITIGATION = "mitigation"
    RISK = "risk"
    CLAUSE = "clause"


class State(StrEnum):
    """Whether its source still stands behind a node."""

    LIVE = "live"
    DEPRECATED = "deprecated"
    REVOKED = "revoked"


class EdgeKind(StrEnum):
    """Why an edge may be believed.

    `official`: the catalogue says so. `evidence`: counted vulnerabilities show it. `curated`: we say so, with a reason.
    `derived`: it follows by rule from other edges.
    """

    OFFICIAL = "official"
    EVIDENCE = "evidence"
    CURATED = "curated"
    DERIVED = "derived"


@dataclass(frozen=True, slots=True)
class Node:
    """One thing that can be cited.

    `id` is canonical (`CWE-89`, `T1059.007`, `A03:2021`, `GDPR Art. 25(1)`). `usage` is the catalogue's word on mapping
    to a weakness (`Allowed`, `Allowed-with-Review`, `Discouraged`, `Prohibited`), `abstraction` its level (`Base`),
    `advice` the first words of how to prevent it. Empty where the source says nothing.
    """

    id: str
    kind: Kind
    name: str
    source: str
    version: str
    text: str = ""
    name_zh: str = ""
    state: State = State.LIVE
    abstraction: str = ""
    usage: str = ""
    advice: str = ""

    @property
    def address(self) -> str:
        """The official page; empty where there is none per entry."""
        path = _ADDRESSES.get(self.kind, "")
        return path.format(number=self.id.rpartition("-")[2], id=self.id, path=self.id.replace(".", "/"))


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation that can be cited: `start` `relation` `end`.

    `support` names the vulnerabilities behind an `evidence` edge; `note` is the reason of a `curated` one and the rule
    of a `derived` one.
    """

    start: str
    relation: str
    end: str
    kind: EdgeKind
    source: str
    version: str
    support: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name for a node, in either language; `source` says who calls it so."""

    term: str
    id: str
    source: str


Record = Node | Edge | Alias
"""What an importer yields."""

_ADDRESSES = {
    Kind.WEAKNESS: "https://cwe.mitre.org/data/definitions/{number}.html",
    Kind.CATEGORY: "https://cwe.mitre.org/data/definitions/{number}.html",
    Kind.VIEW: "https://cwe.mitre.org/data/definitions/{number}.html",
    Kind.PATTERN: "https://capec.mitre.org/data/definitions/{number}.html",
    Kind.VULNERABILITY: "https://www.cve.org/CVERecord?id={id}",
    Kind.TECHNIQUE: "https://attack.mitre.org/techniques/{path}/",
    Kind.TACTIC: "https://attack.mitre.org/tactics/{id}/",
    Kind.MITIGATION: "https://attack.mitre.org/mitigations/{id}/",
}
