"""Search by meaning: silent until the index is whole, and whole by and by."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from casemate.cli.meaning import Meaning
from casemate.knowledge import embed
from casemate.knowledge.build import build
from casemate.knowledge.feeds.importers import Source
from casemate.knowledge.graph import Graph

SMALL = Path(__file__).parents[1] / "knowledge" / "small" / "cwe.xml"


class Lengths:
    """An embedder without a model: texts of one length are the same. Waits where it is told to."""

    def __init__(self) -> None:
        self.may_go = threading.Event()
        self.may_go.set()

    def vectors(self, texts: Sequence[str]) -> embed.Vectors:
        assert self.may_go.wait(10)
        rows = [np.sin(np.arange(1, 9, dtype=np.float32) * len(text)) for text in texts]
        return np.stack([row / np.linalg.norm(row) for row in rows])


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    build((Source("cwe", SMALL),), tmp_path / "graph.sqlite")
    return Graph.open(tmp_path / "graph.sqlite")


def until_whole(meaning: Meaning) -> bool:
    deadline = time.monotonic() + 10
    while not meaning.whole and time.monotonic() < deadline:
        time.sleep(0.01)
    return meaning.whole


def test_it_answers_nothing_before_the_index_is_whole_and_the_nearest_after(graph: Graph) -> None:
    with graph:
        embedder = Lengths()
        embedder.may_go.clear()
        meaning = Meaning(graph, embedder)
        with meaning.growing():
            assert meaning.nearest("anything", 3) == ()
            embedder.may_go.set()
            assert until_whole(meaning)
            assert len(meaning.nearest("anything", 3)) == 3
        assert Meaning(graph, embedder).whole, "the next one finds it whole"


def test_what_is_embedded_when_the_block_ends_is_kept_and_no_thread_is_left(graph: Graph) -> None:
    with graph:
        embedder = Lengths()
        embedder.may_go.clear()
        meaning = Meaning(graph, embedder)
        before = threading.active_count()
        with meaning.growing():
            threading.Timer(0.05, embedder.may_go.set).start()
        assert not meaning.whole or embed.coverage(graph).whole
        deadline = time.monotonic() + 5
        while threading.active_count() > before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert threading.active_count() == before
        with meaning.growing():
            assert until_whole(meaning)
