"""What a build leaves, notices and refuses."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from casemate.errors import KnowledgeError
from casemate.knowledge.build import build, digest
from casemate.knowledge.feeds.importers import Source, recognise
from fakes.small_sources import Small


def test_a_graph_with_damaged_pages_is_built_anew_without_being_forced(small: Small, tmp_path: Path) -> None:
    path = tmp_path / "graph.sqlite"
    build(small.sources, path)
    whole = path.read_bytes()
    half = len(whole) // 2
    path.write_bytes(whole[:half] + bytes(range(256)) * 32 + whole[half + 256 * 32 :])
    assert build(small.sources, path).fresh
    assert path.read_bytes() == whole


def test_the_same_bytes_under_another_name_are_another_source(small: Small, tmp_path: Path) -> None:
    before = digest(small.sources)
    renamed = small.cwe.with_name("cwec_v9.2.xml")
    small.cwe.rename(renamed)
    assert digest((Source("cwe", renamed), small.sources[1])) != before


def test_what_a_killed_build_left_is_swept_by_the_next_and_a_running_one_is_not(small: Small, tmp_path: Path) -> None:
    dead, alive = tmp_path / "graph.sqlite.99999999.part", tmp_path / f"graph.sqlite.{os.getppid()}.part"
    dead.touch()
    alive.touch()
    build(small.sources, tmp_path / "graph.sqlite")
    assert not dead.exists()
    assert alive.exists()


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"])
def test_what_is_no_regular_file_is_refused_before_it_is_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "odd")
    with pytest.raises(KnowledgeError, match="no regular file or folder"):
        recognise(tmp_path / "odd")
