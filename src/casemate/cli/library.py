"""The graph as the roofs hand it down: a retriever, and the citation gate in its two forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from casemate.chat.wire import Citation, Passage
from casemate.cli.meaning import Meaning
from casemate.errors import KnowledgeError
from casemate.knowledge import citations, embed
from casemate.knowledge.gate import mentions
from casemate.knowledge.graph import Graph
from casemate.knowledge.search import Search
from casemate.settings import Settings

_NAMED = 1.0
"""The score of a passage that the text names; nearness alone stays below, and beside a name it is noise."""


@dataclass(frozen=True, slots=True)
class Library:
    """An open graph. Serves as the gateway's `Retriever` and `Checker`, and as the agents' retriever and gate."""

    graph: Graph
    finder: Search
    meaning: Meaning

    def search(self, text: str, limit: int) -> list[Passage]:
        """The passages that a text names by id or alias; if it names none, those nearest to it, best first."""
        found = self.finder.search(text, limit)
        return [passage for passage in found if passage.score >= _NAMED] or found

    def check(self, text: str, offered: Sequence[Passage]) -> list[Citation]:
        """Every identifier of a text, graded; offered ones that it does not name come after."""
        return citations.check(text, self.graph, offered=[passage.node for passage in offered])

    def repair(self, text: str) -> tuple[str, tuple[Citation, ...]]:
        """A text in which every identifier is right, and what was checked."""
        return citations.repair(text, self.graph)


def open_library(settings: Settings) -> Library | NoLibrary:
    """The built graph, or what stands in for it and why."""
    try:
        graph = Graph.open(settings.graph)
    except KnowledgeError as error:
        return NoLibrary(str(error))
    meaning = Meaning(graph, embed.E5())
    return Library(graph, Search(graph, meaning), meaning)


@dataclass(frozen=True, slots=True)
class NoLibrary:
    """What stands in where no graph can be read: nothing is found, and no identifier passes, as none can be checked."""

    reason: str

    def search(self, text: str, limit: int) -> list[Passage]:
        """No passages."""
        del text, limit
        return []

    def repair(self, text: str) -> tuple[str, tuple[Citation, ...]]:
        """The text if it names no identifier, else nothing."""
        return ("" if mentions.find(text) else text), ()
