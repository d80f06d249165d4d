"""Two graphs: a small one from files of our own in the official formats, and the real one, built once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from casemate.errors import KnowledgeError
from casemate.knowledge.build import build, sources
from casemate.knowledge.graph import Graph
from fakes.small_sources import Small

SMALL = Path(__file__).parent / "small"


@pytest.fixture
def small(tmp_path: Path) -> Small:
    """The small sources, to be broken at will."""
    folder = shutil.copytree(SMALL, tmp_path / "small")
    return Small(folder / "cwe.xml", folder / "attack-patterns.json")


@pytest.fixture
def plain_list(tmp_path: Path) -> Path:
    """The small XML list, to be broken at will."""
    return Path(shutil.copy(SMALL / "cwe.xml", tmp_path / "plain.xml"))


@pytest.fixture
def small_graph(small: Small, tmp_path: Path) -> Iterator[Graph]:
    path = tmp_path / "graph.sqlite"
    build(small.sources, path)
    with Graph.open(path) as graph:
        yield graph


@pytest.fixture(scope="session")
def real_graph(artifacts: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    try:
        origin = sources(artifacts)
    except KnowledgeError as error:
        pytest.fail(f"{error}; make test fetches it", pytrace=False)
    path = tmp_path_factory.mktemp("real") / "graph.sqlite"
    build(origin, path)
    with Graph.open(path) as graph:
        yield graph
