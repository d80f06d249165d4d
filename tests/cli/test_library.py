"""What the roofs take from the graph for an answer."""

from typing import cast

import pytest

from casemate.chat.wire import Passage
from casemate.cli.library import Library
from casemate.cli.meaning import Meaning
from casemate.knowledge.graph import Graph
from casemate.knowledge.search import Search


class _Shelf:
    """A search that finds the same passages for every text."""

    def __init__(self, *scores: float) -> None:
        self._found = [Passage(f"CWE-{place}", "", "", "CWE", "4.14", score) for place, score in enumerate(scores)]

    def search(self, _text: str, limit: int) -> list[Passage]:
        return self._found[:limit]


@pytest.mark.parametrize(("scores", "kept"), [((1.0, 1.0, 0.4), 2), ((1.0, 0.9), 1), ((0.6, 0.4), 2), ((), 0)], ids=str)
def test_beside_a_passage_that_the_text_names_those_that_are_only_near_are_left_out(
    scores: tuple[float, ...], kept: int
) -> None:
    library = Library(cast("Graph", None), cast("Search", _Shelf(*scores)), cast("Meaning", None))
    assert len(library.search("anything", 5)) == kept
