"""A node as its page tells it: what is known of it, and its neighbours by relation and by why they may be believed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from casemate.knowledge.curated.dossiers import Dossier, dossier
from casemate.knowledge.graph import Graph
from casemate.knowledge.node import Edge, EdgeKind, Edition, Kind, Node
from casemate.knowledge.passages import first_sentence
from casemate.web.atlas.words import RELATIONS


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The other end of an edge; `node` is None where the graph has the edge alone."""

    id: str
    node: Node | None
    edge: Edge

    @property
    def support(self) -> tuple[str, ...]:
        """The vulnerabilities behind the edge; none where the one behind it is this very neighbour."""
        return behind(self.edge)


@dataclass(frozen=True, slots=True)
class Bucket:
    """Neighbours whose edges one version of one source says, for one reason; `former` where newer ones no longer do."""

    kind: EdgeKind
    source: str
    version: str
    former: bool
    neighbours: tuple[Neighbour, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """All neighbours by one relation; `outward` if the edges start at the node."""

    relation: str
    outward: bool
    buckets: tuple[Bucket, ...]

    @property
    def counts(self) -> Mapping[EdgeKind, int]:
        """How many edges are of which kind."""
        counts: Counter[EdgeKind] = Counter()
        for bucket in self.buckets:
            counts[bucket.kind] += len(bucket.neighbours)
        return counts


@dataclass(frozen=True, slots=True)
class Sheet:
    """Everything that a node's page shows."""

    node: Node
    editions: tuple[Edition, ...]
    aliases: tuple[str, ...]
    phrases: tuple[str, ...]
    dossier: Dossier | None
    groups: tuple[Group, ...]

    @property
    def neighbours(self) -> tuple[Neighbour, ...]:
        """All of them, in the order of the groups; one that several edges lead to stands several times."""
        return tuple(neighbour for group in self.groups for bucket in group.buckets for neighbour in bucket.neighbours)

    @property
    def described(self) -> Edition | None:
        """The other edition that the text is of; None where it is of the node's own."""
        version = self.node.described
        found = (edition for edition in self.editions if edition.version == version != self.node.version)
        return next(found, None)

    @property
    def successors(self) -> tuple[Neighbour, ...]:
        """What its source, or we, put in its place."""
        relation = "replaced-by"
        return tuple(one for one in self.neighbours if one.edge.relation == relation and one.id == one.edge.end)


def sheet(graph: Graph, node: Node) -> Sheet:
    """What a graph and our dossiers know of one of its nodes."""
    return Sheet(
        node,
        graph.editions(node.id),
        graph.aliases(node.id),
        graph.phrases(node.id),
        dossier(node.id) if node.kind is Kind.WEAKNESS else None,
        _groups(graph, node.id),
    )


def behind(edge: Edge) -> tuple[str, ...]:
    """The vulnerabilities behind an edge, without one that is an end of it."""
    return tuple(cve for cve in edge.support if cve not in (edge.start, edge.end))


def called(node: Node, language: str) -> str:
    """A node's name in a language, else in its own; for a vulnerability without a name, what happened."""
    if node.name == node.id:
        return first_sentence(node.text)
    return (node.name_zh if language == "zh" else "") or node.name


def _groups(graph: Graph, id_: str) -> tuple[Group, ...]:
    found: dict[tuple[str, bool], list[Edge]] = {}
    for edge in graph.around(id_, former=True):
        found.setdefault((edge.relation, edge.start == id_), []).append(edge)
    ordered = sorted(found.items(), key=lambda item: (_place(item[0][0]), not item[0][1]))
    return tuple(
        Group(relation, outward, _buckets(graph, edges, outward=outward)) for (relation, outward), edges in ordered
    )


def _buckets(graph: Graph, edges: Iterable[Edge], *, outward: bool) -> tuple[Bucket, ...]:
    found: dict[tuple[bool, EdgeKind, str, str], list[Neighbour]] = {}
    for edge in edges:
        other = edge.end if outward else edge.start
        key = (edge.former, edge.kind, edge.source, edge.version)
        found.setdefault(key, []).append(Neighbour(other, graph.node(other), edge))
    ordered = sorted(found.items(), key=lambda item: (item[0][0], _KINDS.index(item[0][1]), -len(item[1]), item[0][2:]))
    return tuple(
        Bucket(kind, source, version, former, tuple(sorted(neighbours, key=_weight)))
        for (former, kind, source, version), neighbours in ordered
    )


_KINDS = list(EdgeKind)
_PLACES = {relation: place for place, relation in enumerate(RELATIONS)}


def _place(relation: str) -> tuple[int, str]:
    return _PLACES.get(relation, len(_PLACES)), relation


def _weight(neighbour: Neighbour) -> tuple[int, list[tuple[int, str]]]:
    """The best supported first, then by number: CWE-9 before CWE-10."""
    parts = re.findall(r"\d+|\D+", neighbour.id)
    return -len(neighbour.support), [(int(part), "") if part.isdecimal() else (0, part) for part in parts]
