"""The words of the graph: Node, Edition, Edge, Alias, Phrase, as frozen values."""

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
    REQUIREMENT = "requirement"
    CONTROL = "control"
    COUNTERMEASURE = "countermeasure"
    DETECTION = "detection"


class State(StrEnum):
    """Whether its source still stands behind a node, in the newest version that the graph holds.

    `gone`: only an older version has it.
    """

    LIVE = "live"
    DEPRECATED = "deprecated"
    REVOKED = "revoked"
    GONE = "gone"


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
    `advice` the first words of how to prevent it. `version` is the newest that has the node, `described` the version
    that `text` and `advice` are of. Empty where the source says nothing.
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
    described: str = ""

    @property
    def address(self) -> str:
        """The official page; empty where there is none per entry."""
        path = _ADDRESSES.get(self.kind, "")
        return path.format(number=self.id.rpartition("-")[2], id=self.id, path=self.id.replace(".", "/"))


@dataclass(frozen=True, slots=True)
class Edition:
    """What one version of a source calls a node, and whether it stands behind it."""

    id: str
    source: str
    version: str
    name: str
    state: State


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation that can be cited: `start` `relation` `end`.

    `version` is the newest that has the edge; `former` if newer versions of its source no longer have it. `support`
    names the vulnerabilities behind an `evidence` edge; `note` is the reason of a `curated` one and the rule of a
    `derived` one.
    """

    start: str
    relation: str
    end: str
    kind: EdgeKind
    source: str
    version: str
    support: tuple[str, ...] = ()
    note: str = ""
    former: bool = False


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name for a node, in either language; `source` says who calls it so."""

    term: str
    id: str
    source: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """A sentence that somebody may use for a node without knowing its name; search matches questions against it."""

    id: str
    text: str


Record = Node | Edge | Alias | Phrase
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
