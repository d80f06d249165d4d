"""What the writer keeps of two records that carry one key."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from casemate.knowledge.graph import Graph
from casemate.knowledge.node import Edge, EdgeKind, Kind, Node, Record
from casemate.knowledge.store import Writer, recency


def written(folder: Path, *records: Record) -> Graph:
    path = folder / "graph.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        writer = Writer(connection)
        for record in records:
            writer.add(record)
        writer.finish("digest")
    return Graph.open(path)


def entry(version: str, *, name: str = "Weakness", text: str = "", source: str = "CWE") -> Node:
    return Node("CWE-1", Kind.WEAKNESS, name, source, version, text=text)


OLD, NEW = entry("4.14", text="What 4.14 says."), entry("4.19.1")


@pytest.mark.parametrize("records", [(OLD, NEW), (NEW, OLD)], ids=["old first", "new first"])
def test_facts_are_the_newest_ones_and_a_lent_text_says_whose_it_is(tmp_path: Path, records: tuple[Node, ...]) -> None:
    with written(tmp_path, *records) as graph:
        node = graph.node("CWE-1")
        assert node is not None
        assert (node.version, node.text, node.described) == ("4.19.1", "What 4.14 says.", "4.14")
        assert [edition.version for edition in graph.editions("CWE-1")] == ["4.19.1", "4.14"]


@pytest.mark.parametrize("place", range(3))
def test_the_newest_version_s_own_text_wins_in_any_order(tmp_path: Path, place: int) -> None:
    records = [OLD, NEW]
    records.insert(place, entry("4.19.1", text="What 4.19.1 says."))
    with written(tmp_path, *records) as graph:
        node = graph.node("CWE-1")
        assert node is not None
        assert (node.text, node.described) == ("What 4.19.1 says.", "")


def test_of_one_version_the_fuller_text_is_kept(tmp_path: Path) -> None:
    cut, whole = entry("18.1", text="The begin…"), entry("18.1", text="The beginning and the end.")
    with written(tmp_path, cut, whole) as graph:
        node = graph.node("CWE-1")
        assert node is not None
        assert node.text == "The beginning and the end."


@pytest.mark.parametrize(("name", "lent"), [("Weakness of a Sort", True), ("Renamed", False)])
def test_a_text_is_lent_to_a_reworded_name_and_not_to_another(tmp_path: Path, name: str, *, lent: bool) -> None:
    with written(tmp_path, OLD, entry("4.19.1", name=name)) as graph:
        node = graph.node("CWE-1")
        assert node is not None
        assert (node.name, node.text) == (name, "What 4.14 says." if lent else "")


def test_a_source_that_only_knows_the_id_gives_way_to_one_that_knows_the_name(tmp_path: Path) -> None:
    known = Node("CVE-2020-0001", Kind.VULNERABILITY, "CVE-2020-0001", "CWE", "4.14", text="What happened.")
    named = Node("CVE-2020-0001", Kind.VULNERABILITY, "Shop Path Traversal", "CISA KEV", "2025-08-25")
    with written(tmp_path, known, named) as graph:
        node = graph.node("CVE-2020-0001")
        assert node is not None
        assert (node.name, node.source, node.text) == ("Shop Path Traversal", "CISA KEV", "What happened.")


def test_of_two_versions_of_an_edge_the_newer_one_is_kept(tmp_path: Path) -> None:
    versions = ("4.9", "4.14", "4.2")
    edges = [Edge("CWE-1", "child-of", "CWE-2", EdgeKind.OFFICIAL, "CWE", version) for version in versions]
    with written(tmp_path, entry("4.14"), Node("CWE-2", Kind.WEAKNESS, "Other", "CWE", "4.14"), *edges) as graph:
        assert [edge.version for edge in graph.around("CWE-1")] == ["4.14"]


@pytest.mark.parametrize(
    ("older", "newer"), [("4.2", "4.19.1"), ("18.1", "19.1"), ("2025-07-28", "2025-08-25"), ("", "1"), ("4.9", "4.14")]
)
def test_versions_and_dates_are_ordered_by_their_numbers(older: str, newer: str) -> None:
    assert recency(older) < recency(newer)
