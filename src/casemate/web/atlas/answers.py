"""What a question to the graph's pages is answered with, as values: found in a graph, not yet a page or JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass

from casemate.chat.wire import Passage
from casemate.knowledge import passages, words
from casemate.knowledge.gate import mentions
from casemate.knowledge.graph import Census, Graph
from casemate.knowledge.node import Edge, EdgeKind, Node
from casemate.knowledge.routes import Route, routes
from casemate.web.atlas.lending import Reading
from casemate.web.atlas.sheet import Sheet, behind, sheet

MAX_QUESTION = 300
"""Characters of a search."""
MAX_ID = 100
"""Characters of an id or a name; the longest of either is shorter."""
_RESULTS = 20
_SUGGESTIONS = 6
_EXAMPLES = ("CWE-89", "T1190", "CAPEC-66", "CVE-2021-44228", "A05:2025", "GDPR Art. 32(1)(b)", "NIST AC-3", "D3-CH")


@dataclass(frozen=True, slots=True)
class Lobby:
    """The page before anything was asked."""

    census: Census
    examples: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """Each node that bears on a question, best first, with the passage that says why."""

    question: str
    results: tuple[tuple[Node, Passage], ...]


@dataclass(frozen=True, slots=True)
class There:
    """The question names exactly one node."""

    id: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """No node is called so; `nearest` may have been meant."""

    asked: str
    nearest: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a way: `edge` walked to `to`, `along` it or against it."""

    to: Node
    edge: Edge
    along: bool

    @property
    def support(self) -> tuple[str, ...]:
        """The vulnerabilities behind the edge."""
        return behind(self.edge)


@dataclass(frozen=True, slots=True)
class Way:
    """A way from one node to another; `weakest` is the kind of the step that is believed least."""

    weakest: EdgeKind
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Ways:
    """How two nodes hang together, the best way first."""

    start: Node
    end: Node
    found: tuple[Way, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """The question cannot be read: `why` is a word of the pages, `limit` the figure in it."""

    why: str
    limit: int = 0


Answer = Lobby | Found | There | Unknown | Sheet | Ways | Refusal


def search(reading: Reading, question: str) -> Lobby | Found | There | Refusal:
    """Where a question leads: to one node that it names, to those that bear on it, or to the lobby if it is empty."""
    if not question:
        nodes = map(reading.graph.node, _EXAMPLES)
        return Lobby(reading.graph.census(), tuple(node for node in nodes if node))
    if len(question) > MAX_QUESTION:
        return Refusal("too_long", MAX_QUESTION)
    if node := _named(reading.graph, question):
        return There(node.id)
    return Found(question, _results(reading, question, limit=_RESULTS))


def show(reading: Reading, asked: str) -> Sheet | Unknown | Refusal:
    """The node of an id or name."""
    node = _node(reading, asked)
    return sheet(reading.graph, node) if isinstance(node, Node) else node


def ways(reading: Reading, asked: str, *, to: str) -> Ways | Unknown | Refusal:
    """The best ways from one node to another; none if both are the same."""
    start, end = _node(reading, asked), _node(reading, to)
    if not isinstance(start, Node):
        return start
    if not isinstance(end, Node):
        return end
    found = routes(reading.graph, start.id, end=end.id) if start != end else ()
    return Ways(start, end, tuple(Way(route.weakest, _steps(reading.graph, route)) for route in found))


def _node(reading: Reading, asked: str) -> Node | Unknown | Refusal:
    if not asked:
        return Refusal("empty")
    if len(asked) > MAX_ID:
        return Refusal("too_long", MAX_ID)
    return _named(reading.graph, asked) or Unknown(asked, _nearest(reading, asked))


def _nearest(reading: Reading, asked: str) -> tuple[Node, ...]:
    """Who may have been meant: of `T1059.999` that is `T1059`; where it is no id at all, what search finds."""
    id_ = mentions.canonical(asked)
    if not mentions.find(id_):
        return tuple(node for node, _ in _results(reading, asked, limit=_SUGGESTIONS))
    wholes = (id_[: cut.start()] for cut in _CUTS.finditer(id_))
    return tuple(node for whole in reversed(list(wholes)) if (node := reading.graph.node(whole)))


_CUTS = re.compile(r"[.(]|(?<=\d) (?=\w\))")


def _named(graph: Graph, asked: str) -> Node | None:
    """The node that an id, or a name of this one alone, means."""
    if node := graph.node(mentions.canonical(asked)):
        return node
    ids = graph.names.get(words.fold(asked), ())
    return graph.node(ids[0]) if len(ids) == 1 else None


def _results(reading: Reading, question: str, *, limit: int) -> tuple[tuple[Node, Passage], ...]:
    """Every node of that very name, then what search finds."""
    graph, chinese = reading.graph, words.has_han(question)
    named = filter(None, map(graph.node, graph.names.get(words.fold(question), ())))
    found = [passages.passage(node, graph, score=1.0, chinese=chinese) for node in named]
    by_node = {passage.node: passage for passage in (*found, *reading.search.search(question, limit))}
    pairs = ((graph.node(passage.node), passage) for passage in by_node.values())
    return tuple((node, passage) for node, passage in pairs if node)[:limit]


def _steps(graph: Graph, route: Route) -> tuple[Step, ...]:
    nodes = ((graph.node(step.to), step) for step in route.steps)
    return tuple(Step(node, step.edge, step.along) for node, step in nodes if node)
