"""What differs between two graphs: what came, what went, what changed, kind by kind. Pure but for reading them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from casemate.knowledge.graph import Graph
from casemate.knowledge.node import Kind, State

_FACTS = "SELECT id, kind, name, state, usage FROM node WHERE state <> ? ORDER BY rowid"
_EDGES = 'SELECT start, relation, "end", kind, source FROM edge WHERE NOT former'


@dataclass(frozen=True, slots=True)
class Named:
    """A node and its name."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Changed:
    """A node of which one fact is another now."""

    id: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class KindDifference:
    """What differs among the nodes of one kind. `gone`: no longer there, or only in an older version of its source."""

    kind: Kind
    added: tuple[Named, ...] = ()
    gone: tuple[Named, ...] = ()
    renamed: tuple[Changed, ...] = ()
    state: tuple[Changed, ...] = ()
    usage: tuple[Changed, ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeDifference:
    """How many edges of one relation and source came and went; those that are former count as gone."""

    relation: str
    source: str
    added: int
    removed: int


@dataclass(frozen=True, slots=True)
class VersionDifference:
    """The versions of one source, newest first."""

    source: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between two graphs; kinds, relations and sources in which nothing differs are left out."""

    kinds: tuple[KindDifference, ...]
    edges: tuple[EdgeDifference, ...]
    versions: tuple[VersionDifference, ...]

    @property
    def empty(self) -> bool:
        """Whether nothing differs."""
        return not (self.kinds or self.edges or self.versions)


def difference(old: Graph, new: Graph) -> Difference:
    """What came, went and changed from the old graph to the new one.

    Raises:
        KnowledgeError: one of them is damaged.
    """
    return Difference(tuple(_kinds(old, new)), tuple(_edges(old, new)), tuple(_versions(old, new)))


@dataclass(frozen=True, slots=True)
class _Facts:
    name: str
    state: str
    usage: str


_Fact = Callable[[_Facts], str]


def _kinds(old: Graph, new: Graph) -> Iterator[KindDifference]:
    before, after = _facts(old), _facts(new)
    for kind in Kind:
        was, now = before[kind], after[kind]
        found = KindDifference(
            kind,
            added=tuple(Named(id_, now[id_].name) for id_ in now if id_ not in was),
            gone=tuple(Named(id_, was[id_].name) for id_ in was if id_ not in now),
            renamed=tuple(_changed(was, now, fact=lambda facts: facts.name)),
            state=tuple(_changed(was, now, fact=lambda facts: facts.state)),
            usage=tuple(_changed(was, now, fact=lambda facts: facts.usage)),
        )
        if found != KindDifference(kind):
            yield found


def _facts(graph: Graph) -> dict[str, dict[str, _Facts]]:
    """Kind → id → what can change of a node that the newest version of its source still has."""
    found: dict[str, dict[str, _Facts]] = {kind: {} for kind in Kind}
    for id_, kind, *facts in graph.rows(_FACTS, State.GONE):
        found[kind][id_] = _Facts(*facts)
    return found


def _changed(was: Mapping[str, _Facts], now: Mapping[str, _Facts], *, fact: _Fact) -> Iterator[Changed]:
    for id_, facts in now.items():
        if id_ in was and fact(was[id_]) != fact(facts):
            yield Changed(id_, fact(was[id_]), fact(facts))


def _edges(old: Graph, new: Graph) -> Iterator[EdgeDifference]:
    before, after = ({tuple(row) for row in graph.rows(_EDGES)} for graph in (old, new))
    added = Counter((relation, source) for _, relation, _, _, source in after - before)
    removed = Counter((relation, source) for _, relation, _, _, source in before - after)
    for key in sorted(added | removed):
        yield EdgeDifference(*key, added[key], removed[key])


def _versions(old: Graph, new: Graph) -> Iterator[VersionDifference]:
    before, after = old.census().versions, new.census().versions
    for source in sorted({*before, *after}):
        pair = before.get(source, ()), after.get(source, ())
        if pair[0] != pair[1]:
            yield VersionDifference(source, *pair)
