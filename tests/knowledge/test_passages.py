from __future__ import annotations

import pytest

from casemate.knowledge import words
from casemate.knowledge.graph import Graph
from casemate.knowledge.passages import MAX_WORDS, count
from casemate.knowledge.search import Search


def test_a_weakness_with_a_dossier_is_told_in_the_language_of_the_question(real_graph: Graph) -> None:
    search = Search(real_graph)
    chinese, english = search.search("SQL注入怎么防", 1)[0], search.search("how to stop sql injection", 1)[0]
    assert (chinese.node, english.node) == ("CWE-89", "CWE-89")
    assert "预防：" in chinese.text
    assert "Prevent: " in english.text
    assert "A05:2025" in chinese.text


def test_every_passage_names_its_node_and_version_and_keeps_to_its_words(real_graph: Graph) -> None:
    search = Search(real_graph)
    for question in ("目录穿越", "ransomware", "等保 身份鉴别", "A05:2025", "T1562.001", "CWE-1427", "D3-CH"):
        for passage in search.search(question, 5):
            node = real_graph.node(passage.node)
            assert node is not None
            assert (passage.title, passage.version) == (node.name, node.version)
            assert count(passage.text) <= MAX_WORDS


def test_what_left_its_catalogue_says_so_first_and_names_its_heir(real_graph: Graph) -> None:
    found = Search(real_graph).search("T1562.001", 2)
    assert found[0].text.startswith("Gone; replaced by T1685.")
    assert found[1].node == "T1685"


@pytest.mark.parametrize(("question", "han"), [("T1685 是什么", True), ("what is T1685", False)])
def test_an_entry_without_a_text_is_told_by_a_saying(real_graph: Graph, question: str, *, han: bool) -> None:
    found = Search(real_graph).search(question, 1)[0]
    assert found.node == "T1685"
    assert words.has_han(found.text[:20]) == han
