"""What follows from all sources together: who is gone, who took whose place, and which techniques a weakness enables.

Pure: from nodes and edges as the importers gave them to nodes and edges as the graph keeps them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from casemate.errors import KnowledgeError
from casemate.knowledge.node import Edge, EdgeKind, Kind, Node, State

Recency = Callable[[str], tuple[int, ...]]
"""A version as what orders it."""

EFFECTS = ("way-in", "first-effect", "second-effect")
"""How a vulnerability and a technique go together: what exploits it, and what exploiting it gives."""
_KEV = "CISA KEV"
_MOST_STEPS = 5
_MOST_LEAVING = 0.2
"""What share of its entries a catalogue may drop from one version to the next."""


def retired(nodes: Mapping[str, Node], recency: Recency) -> dict[str, Node]:
    """The nodes, with `gone` for what the newest version of their source no longer has.

    Raises:
        KnowledgeError: the newest version lacks so much that it cannot be the whole of its source.
    """
    kept: dict[str, Node] = {}
    catalogues: dict[tuple[str, str], list[Node]] = defaultdict(list)
    for node in nodes.values():
        kept[node.id] = node  # in the order in which the sources gave them
        if node.state is State.LIVE and node.kind is not Kind.RISK:  # the lists of two years stand beside each other
            catalogues[node.source, node.kind].append(node)
    for (source, kind), entries in catalogues.items():
        newest = max((entry.version for entry in entries), key=recency)
        left = [entry for entry in entries if recency(entry.version) < recency(newest)]
        if len(left) > _MOST_LEAVING * len(entries):
            raise KnowledgeError(
                f"{source} {newest} holds {len(entries) - len(left)} of {len(entries)} entries of kind {kind}",
                remedy="give the whole of it, not a part",
            )
        kept.update({entry.id: replace(entry, state=State.GONE) for entry in left})
    return kept


def joined(nodes: Mapping[str, Node], given: Iterable[Edge], *, recency: Recency) -> Iterator[Edge]:
    """Every edge given, marked `former` where it is, and those that follow from them."""
    edges = list(_aged(given, recency))
    edges += _namesakes(nodes, edges)
    successors = _successors(nodes, edges)
    found = [*_through_vulnerabilities(edges), *_through_patterns(nodes, edges, successors=successors)]
    for edge in (*edges, *found):
        if edge.relation in ("enables", *EFFECTS, "mitigates", "detects", "counters") and not edge.former:
            yield from _translated(nodes, edge, successors=successors)
        else:
            yield edge


def _aged(given: Iterable[Edge], recency: Recency) -> Iterator[Edge]:
    """An edge of an older version than the newest of its source and relation is `former`."""
    every = tuple(given)
    newest: dict[tuple[str, str], str] = {}
    for edge in every:
        key = (edge.source, edge.relation)
        newest[key] = max(newest.get(key, edge.version), edge.version, key=recency)
    for edge in every:
        # a successor that an older version named stays one: newer versions only drop the entry
        outdated = edge.relation != "replaced-by" and edge.version != newest[edge.source, edge.relation]
        yield replace(edge, former=True) if outdated else edge


def _namesakes(nodes: Mapping[str, Node], edges: Iterable[Edge]) -> Iterator[Edge]:
    """A node that is gone is replaced by the one that took over its name."""
    replaced = {edge.start for edge in edges if edge.relation == "replaced-by"}
    live: dict[tuple[str, str, str], list[Node]] = defaultdict(list)
    for node in nodes.values():
        if node.state is State.LIVE:
            live[node.source, node.kind, node.name].append(node)
    for node in nodes.values():
        heirs = live.get((node.source, node.kind, node.name), ())
        if node.state is State.GONE and node.id not in replaced and len(heirs) == 1:
            note = f"same name in {heirs[0].version}"
            yield Edge(node.id, "replaced-by", heirs[0].id, EdgeKind.DERIVED, node.source, heirs[0].version, note=note)


def _successors(nodes: Mapping[str, Node], edges: Iterable[Edge]) -> dict[str, str]:
    """Each node that has left → the live one at the end of its line of successors, where that is one."""
    steps: dict[str, list[str]] = defaultdict(list)
    for edge in edges:
        if edge.relation == "replaced-by":
            steps[edge.start].append(edge.end)
    found = {}
    for start in steps:
        at = start
        for _ in range(_MOST_STEPS):
            following = steps.get(at, ())
            if len(following) != 1:
                break
            at = following[0]
        if at != start and at in nodes and nodes[at].state is State.LIVE:
            found[start] = at
    return found


def _through_vulnerabilities(edges: Iterable[Edge]) -> Iterator[Edge]:
    """Weakness → technique, by the exploited vulnerabilities that have both; sources are those of its own support."""
    weaknesses: dict[str, list[Edge]] = defaultdict(list)
    techniques: dict[str, list[Edge]] = defaultdict(list)
    for edge in edges:
        if not edge.former and edge.relation == "observed-in" and edge.source == _KEV:
            weaknesses[edge.end].append(edge)
        elif not edge.former and edge.relation in EFFECTS:
            techniques[edge.start].append(edge)
    found: dict[tuple[str, str], list[tuple[Edge, Edge]]] = defaultdict(list)
    for cve, owners in weaknesses.items():
        for effect in techniques.get(cve, ()):
            for owner in owners:
                found[owner.start, effect.end].append((owner, effect))
    for (cwe, technique), steps in sorted(found.items()):
        told = {step.source: step.version for pair in steps for step in pair}
        shown = {effect: {step.start for _, step in steps if step.relation == effect} for effect in EFFECTS}
        support = tuple(sorted(set().union(*shown.values())))
        note = "way in {}, first effect {}, second effect {}".format(*(len(shown[effect]) for effect in EFFECTS))
        source, version = " + ".join(told), " + ".join(told.values())
        yield Edge(cwe, "enables", technique, EdgeKind.EVIDENCE, source, version, support, note)


def _through_patterns(
    nodes: Mapping[str, Node], edges: Iterable[Edge], *, successors: Mapping[str, str]
) -> Iterator[Edge]:
    """Weakness → technique, by the live attack patterns that the catalogues tie to both."""
    techniques: dict[str, list[Edge]] = defaultdict(list)
    attacked: list[Edge] = []
    for edge in edges:
        if edge.relation == "carried-out-by" and nodes[edge.start].state is State.LIVE:
            techniques[edge.start].append(edge)
        elif edge.relation == "attacked-by":
            attacked.append(edge)
    through: dict[tuple[str, str], list[Edge]] = defaultdict(list)
    for edge in attacked:
        for step in techniques.get(edge.end, ()):
            through[edge.start, successors.get(step.end, step.end)].append(step)
    for (cwe, technique), steps in sorted(through.items()):
        patterns = ",".join(dict.fromkeys(step.start for step in steps))
        yield Edge(cwe, "enables", technique, EdgeKind.DERIVED, steps[0].source, steps[0].version,
                   note=f"through {patterns}")  # fmt: skip


def _translated(nodes: Mapping[str, Node], edge: Edge, *, successors: Mapping[str, str]) -> Iterator[Edge]:
    """The edge, and where an end has left, its twin at the successor; the edge itself is then `former`."""
    start, end = successors.get(edge.start, edge.start), successors.get(edge.end, edge.end)
    if (start, end) == (edge.start, edge.end):
        left = any(id_ in nodes and nodes[id_].state is not State.LIVE for id_ in (edge.start, edge.end))
        yield replace(edge, former=True) if left and edge.relation == "enables" else edge
        return
    yield replace(edge, former=True)
    recorded = ", ".join(id_ for id_ in (edge.start, edge.end) if id_ in successors)
    note = "; ".join(filter(None, (edge.note, f"recorded as {recorded}")))
    yield replace(edge, start=start, end=end, note=note)
