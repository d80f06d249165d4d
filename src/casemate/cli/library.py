"""The graph as the roofs hand it down: a retriever, and the citation gate in its two forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from casemate.chat.wire import Citation, Passage
from casemate.errors import KnowledgeError
from casemate.knowledge import citations, mentions
from casemate.knowledge.graph import Graph
from casemate.knowledge.search import Search
from casemate.settings import Settings


@dataclass(frozen=True, slots=True)
class Library:
    """An open graph. Serves as the gateway's `Retriever` and `Checker`, and as the agents' retriever and gate."""

    graph: Graph
    finder: Search

    def search(self, text: str, limit: int) -> list[Passage]:
        """The passages nearest to a text, best first."""
        return self.finder.search(text, limit)

    def check(self, text: str, offered: Sequence[Passage]) -> list[Citation]:
        """Every identifier of a text, graded; offered ones that it does not name come after."""
        return citations.check(text, self.graph, offered=[passage.node for passage in offered])

    def repair(self, text: str) -> tuple[str, tuple[Citation, ...]]:
        """A text in which every identifier is right, and what was checked."""
        return citations.repair(text, self.graph)


def open_library(settings: Settings) -> Library | None:
    """The built graph; None where there is none that can be used."""
    try:
        graph = Graph.open(settings.graph)
    except KnowledgeError:
        return None
    return Library(graph, Search(graph))


class NoLibrary:
    """What stands in where no graph is built: nothing is found, and no identifier passes, since none can be checked."""

    def search(self, text: str, limit: int) -> list[Passage]:
        """No passages."""
        del text, limit
        return []

    def repair(self, text: str) -> tuple[str, tuple[Citation, ...]]:
        """The text if it names no identifier, else nothing."""
        return ("" if mentions.find(text) else text), ()


NO_LIBRARY = NoLibrary()
