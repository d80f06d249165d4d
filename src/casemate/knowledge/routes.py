"""How two nodes hang together: the shortest ways through the graph, each step with its kind and count."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise

from casemate.knowledge.graph import Graph
from casemate.knowledge.node import Edge, EdgeKind, Kind, State

_COST = {EdgeKind.OFFICIAL: 1.0, EdgeKind.EVIDENCE: 1.0, EdgeKind.CURATED: 1.5, EdgeKind.DERIVED: 2.0}
_MOST = 5.0
"""What a way may cost; behind it nothing is explained any more."""
_HUBS = frozenset({Kind.VIEW, Kind.CATEGORY, Kind.TACTIC, Kind.VULNERABILITY, Kind.DETECTION})
"""Everything meets in these, so a way through one says nothing."""
_SILENT = frozenset({"replaced-by", "peer-of"})


@dataclass(frozen=True, slots=True)
class Step:
    """An edge as it is walked: `at` → `to`, along the edge or against it."""

    at: str
    to: str
    edge: Edge

    @property
    def along(self) -> bool:
        """Whether it goes the way that the edge points."""
        return self.edge.start == self.at


@dataclass(frozen=True, slots=True)
class Route:
    """A way from one node to another."""

    steps: tuple[Step, ...]

    @property
    def weakest(self) -> EdgeKind:
        """The kind of the step that is believed least."""
        return max((step.edge.kind for step in self.steps), key=list(EdgeKind).index)


def routes(graph: Graph, start: str, *, end: str, limit: int = 3) -> tuple[Route, ...]:
    """The best ways from one node to another, best first; no two begin with the same edge.

    A step costs by its kind, and less the more exploited vulnerabilities stand behind it.
    """
    found: list[Route] = []
    barred: set[Edge] = set()
    while len(found) < limit:
        route = _cheapest(graph, start, end=end, barred=barred)
        if route is None:
            break
        found.append(route)
        barred.add(route.steps[0].edge)
    return tuple(found)


def _cheapest(graph: Graph, start: str, *, end: str, barred: Collection[Edge]) -> Route | None:
    waiting: list[tuple[float, int, str, tuple[Step, ...]]] = [(0.0, 0, start, ())]
    done: set[str] = set()
    order = 0
    while waiting:
        cost, _, at, steps = heapq.heappop(waiting)
        if at == end and steps:
            return Route(steps)
        if at in done or (steps and _is_hub(graph, at)):
            continue
        done.add(at)
        for step in _onward(graph, at, before=steps):
            if not steps and step.edge in barred:
                continue
            price = cost + _COST[step.edge.kind] - min(len(step.edge.support), 20) / 50
            if step.to not in done and price <= _MOST:
                order += 1
                heapq.heappush(waiting, (price, order, step.to, (*steps, step)))
    return None


def _onward(graph: Graph, at: str, *, before: tuple[Step, ...]) -> Iterator[Step]:
    """Steps away from a node that keep the way telling something."""
    for edge in graph.around(at):
        step = Step(at, edge.end if edge.start == at else edge.start, edge)
        if edge.relation not in _SILENT and not _strays(before, step):
            yield step


def _strays(before: tuple[Step, ...], step: Step) -> bool:
    """Back along the relation that led here (two nodes share a third: nothing follows), or a second turn of the way."""
    if before and before[-1].edge.relation == step.edge.relation and before[-1].along != step.along:
        return True
    directed = [taken.along for taken in (*before, step) if taken.edge.relation != "child-of"]
    return sum(one != other for one, other in pairwise(directed)) > 1


def _is_hub(graph: Graph, id_: str) -> bool:
    node = graph.node(id_)
    return node is None or node.kind in _HUBS or node.state is not State.LIVE
