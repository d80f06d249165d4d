"""Whether the graph holds a relation that a text claims, contradicts it, or only lacks it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from casemate.knowledge.gate.kinship import Kinship
from casemate.knowledge.gate.mentions import NO_YEAR
from casemate.knowledge.gate.relations import Link, family
from casemate.knowledge.graph import Graph
from casemate.knowledge.node import Edge, EdgeKind, State

_WORDS = {
    "enables": "leads to", "attacked-by": "is attacked by", "carried-out-by": "is carried out by",
    "mitigates": "mitigates", "counters": "counters", "detects": "detects", "touches": "touches",
    "achieves": "is a technique of", "has-member": "holds", "child-of": "is a child of",
    "can-precede": "can precede",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a claim: its grade, the reason, and what is right (ids or names, best first)."""

    grade: str
    reason: str
    right: tuple[str, ...] = ()


class Prover:
    """Looks claims up in one graph; remembers what it found."""

    def __init__(self, graph: Graph, kin: Kinship, *, risk_years: tuple[str, ...]) -> None:
        self._graph = graph
        self._kin = kin
        self._years = risk_years
        self._is_held = lru_cache(64)(self._has_edges)
        self._judged = lru_cache(8192)(self._judge)

    def fault(self, link: Link) -> Fault | None:
        """What is wrong with a link; None if the graph has it, or cannot judge it."""
        return self._judged(link.start, link.relation, end=link.end, authority=link.authority, implied=link.implied)

    def tactics(self, technique: str) -> tuple[str, ...]:
        """The tactics of a technique in the newest matrix."""
        return tuple(edge.end for edge in self._graph.around(technique, "achieves") if edge.start == technique)

    def _has_edges(self, relation: str, kinds: str) -> bool:
        """Whether the graph holds any such relation between such things."""
        rows = self._graph.rows('SELECT DISTINCT substr(start, 1, 5), substr("end", 1, 5) FROM edge WHERE relation = ?',
                                relation)  # fmt: skip
        return any(family(start) + family(end) == kinds for start, end in rows)

    def _judge(self, start: str, relation: str, *, end: str, authority: bool, implied: bool) -> Fault | None:
        if not self._is_held(relation, family(start) + family(end)):
            return None
        starts = self._readings(start)
        nodes = [self._graph.node(one) for one in (*starts, end)]
        if any(node is None or node.state is not State.LIVE for node in nodes):
            return None
        if relation == "child-of" and (end in self._kin.ancestors(start) or self._kin.has_member(end, start)):
            return None
        edges = [edge for one in starts for edge in self._edges(one, relation, end=end)]
        if edges:
            ours = authority and all(edge.kind is EdgeKind.CURATED for edge in edges)
            reason = f"that {start} {_WORDS[relation]} {end} is our own judgement; no catalogue or law says so"
            return Fault("H6", reason) if ours and not implied else None
        return self._contradiction(starts, relation, end=end) or (
            None if implied else Fault("H6", f"the graph has no {start} {_WORDS[relation]} {end}")
        )

    def _readings(self, id_: str) -> tuple[str, ...]:
        """A class named without its year may be that of any list."""
        if not id_.startswith(NO_YEAR):
            return (id_,)
        every = tuple(f"{id_.removeprefix(NO_YEAR)}:{year}" for year in self._years)
        return tuple(one for one in every if self._graph.node(one)) or (id_,)

    def _edges(self, start: str, relation: str, *, end: str) -> list[Edge]:
        """Edges that bear a claim out; one level up or down a hierarchy is near enough."""
        if relation == "has-member":
            members = self._graph.around(start, relation)
            fitting = {end} | self._kin.ancestors(end)
            return [edge for edge in members if edge.start == start and edge.end in fitting]
        starts, ends = {start}, {end}
        if relation not in ("achieves", "child-of", "can-precede"):
            starts |= self._near(start) if family(start) in "WT" else set()
            ends |= self._near(end)
        around = (edge for one in starts for edge in self._graph.around(one, relation))
        return [edge for edge in around if edge.start in starts and edge.end in ends]

    def _near(self, id_: str) -> set[str]:
        if family(id_) == "L":
            return {*self._kin.ancestors(id_), *self._kin.descendants(id_)}
        return {*self._kin.parents(id_), *self._kin.children(id_)}

    def _contradiction(self, starts: tuple[str, ...], relation: str, *, end: str) -> Fault | None:
        start = starts[0]
        if relation == "achieves" and (right := self.tactics(start)):
            return Fault("H7", f"{start} is not a technique of {end}", right)
        if relation == "child-of" and (right := self._kin.parents(start)):
            return Fault("H7", f"{start} is not a child of {end}", right)
        if relation == "has-member":
            year = start.rpartition(":")[2]
            fitting = (end, *sorted(self._kin.ancestors(end)))
            right = tuple(risk for one in fitting for risk in self._kin.classes(one) if risk.endswith(f":{year}"))
            if right:
                return Fault("H7", f"{end} is not in {start}", tuple(dict.fromkeys(right)))
        return None
