"""Who stands above, below and beside whom in the catalogues, in memory: built once per graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from weakref import WeakKeyDictionary

from casemate.knowledge.graph import Graph

_EDGES = """
    SELECT start, relation, "end" FROM edge
    WHERE former = 0 AND relation IN ('child-of', 'part-of', 'has-member', 'peer-of', 'can-also-be', 'can-precede',
                                      'requires', 'starts-with')
    ORDER BY relation != 'child-of', kind != 'official', start, "end"
"""
_ABOVE = frozenset(("child-of", "part-of"))


class Kinship:
    """The hierarchies of one graph; members of a class of the Top 10 are not below it."""

    def __init__(self, graph: Graph) -> None:
        above: dict[str, list[str]] = defaultdict(list)
        below: dict[str, list[str]] = defaultdict(list)
        beside: dict[str, set[str]] = defaultdict(set)
        classes: dict[str, list[str]] = defaultdict(list)
        for start, relation, end in graph.rows(_EDGES):
            if relation in _ABOVE:
                above[start].append(end)
                below[end].append(start)
            elif relation == "has-member" and start.startswith("A"):
                classes[end].append(start)
            elif relation == "has-member":
                below[start].append(end)
                beside[end].add(start)
            else:
                beside[start].add(end)
                beside[end].add(start)
        self._above, self._below, self._classes = _unique(above), _unique(below), _unique(classes)
        self._beside: Mapping[str, set[str]] = beside
        self._ancestors: dict[str, frozenset[str]] = {}

    def parents(self, id_: str) -> tuple[str, ...]:
        """What a node is a child or part of."""
        return self._above.get(id_, ())

    def children(self, id_: str) -> tuple[str, ...]:
        """Its children, parts and members."""
        return self._below.get(id_, ())

    def classes(self, id_: str) -> tuple[str, ...]:
        """The classes of the OWASP Top 10 that list a weakness."""
        return self._classes.get(id_, ())

    def ancestors(self, id_: str) -> frozenset[str]:
        """Everything above a node."""
        known = self._ancestors.get(id_)
        if known is None:
            found: set[str] = set()
            level = set(self.parents(id_))
            while level:
                found |= level
                level = {up for one in level for up in self.parents(one)} - found
            known = self._ancestors[id_] = frozenset(found)
        return known

    def descendants(self, id_: str) -> Iterator[str]:
        """Everything below a node, level by level."""
        seen, level = {id_}, [id_]
        while level:
            level = list(dict.fromkeys(down for one in level for down in self.children(one) if down not in seen))
            seen.update(level)
            yield from level

    def related(self, id_: str, others: tuple[str, ...]) -> bool:
        """Whether one of the others stands above, below or right beside a node."""
        beside = self._beside.get(id_, set())
        above = self.ancestors(id_)
        return any(other in above or other in beside or id_ in self.ancestors(other) for other in others)

    def has_member(self, group: str, id_: str) -> bool:
        """Whether a category or view lists a node."""
        return id_ in self._below.get(group, ())


_BUILT: WeakKeyDictionary[Graph, Kinship] = WeakKeyDictionary()


def kinship(graph: Graph) -> Kinship:
    """The hierarchies of a graph; read at the first call and kept as long as the graph is."""
    found = _BUILT.get(graph)
    if found is None:
        found = _BUILT[graph] = Kinship(graph)
    return found


def _unique(lists: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {id_: tuple(dict.fromkeys(others)) for id_, others in lists.items()}
