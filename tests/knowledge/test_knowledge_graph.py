from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from casemate.errors import KnowledgeError
from casemate.knowledge.build import Progress, Sources, build
from casemate.knowledge.curated import tables
from casemate.knowledge.graph import Graph
from casemate.knowledge.node import EdgeKind, Kind, State

COMMON = (
    89, 79, 78, 77, 94, 22, 502, 918, 611, 352, 306, 798, 434, 601, 287, 295, 327, 328, 330, 732, 1336, 90,
    643, 943, 117, 113, 532, 209, 489, 614, 1004, 400, 1333, 377, 639, 862, 863, 319, 259, 321, 338, 916, 759,
    521, 522, 613,
)  # fmt: skip
"""Numbers of the commonest weaknesses of code."""


def test_a_node_is_found_by_its_id_and_an_unknown_id_gives_none(small_graph: Graph) -> None:
    node = small_graph.node("T1190")
    assert node is not None
    assert node.name == "Exploit Public-Facing Application"
    assert small_graph.node("T9999") is None


def test_edges_are_seen_from_both_ends_official_ones_first(small_graph: Graph) -> None:
    around = small_graph.around("CWE-89")
    assert {(edge.start, edge.relation, edge.end) for edge in around} >= {
        ("A03:2021", "has-member", "CWE-89"),
        ("CWE-89", "child-of", "CWE-20"),
        ("CWE-89", "enables", "T1190"),
    }
    kinds = [edge.kind for edge in around]
    assert kinds == sorted(kinds, key=list(EdgeKind).index)
    assert {edge.relation for edge in small_graph.around("CWE-89", "touches")} == {"touches"}


def test_an_edge_to_nowhere_is_dropped_and_counted(small: Sources, tmp_path: Path) -> None:
    report = build(small, tmp_path / "graph.sqlite")
    with Graph.open(tmp_path / "graph.sqlite") as graph:
        assert ("CWE-89", "CWE-4242") not in {(e.start, e.end) for e in graph.around("CWE-89")}
        assert graph.census().dangling == 0
    assert report.dropped > 0


def test_a_build_of_unchanged_sources_keeps_the_file(small: Sources, tmp_path: Path) -> None:
    path = tmp_path / "graph.sqlite"
    first = build(small, path)
    stamp = path.stat().st_ino
    second = build(small, path)
    assert (first.fresh, second.fresh) == (True, False)
    assert (first.nodes, first.edges) == (second.nodes, second.edges)
    assert path.stat().st_ino == stamp
    small.cwe.write_text(small.cwe.read_text().replace("All of the list.", "Another list."))
    assert build(small, path).fresh


def test_the_same_sources_give_the_same_graph(small: Sources, tmp_path: Path) -> None:
    contents = []
    for name in ("one.sqlite", "two.sqlite"):
        build(small, tmp_path / name)
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]


def test_a_watcher_hears_every_stage_to_its_end(small: Sources, tmp_path: Path) -> None:
    seen: list[Progress] = []
    build(small, tmp_path / "graph.sqlite", observe=seen.append)
    ends = [step for step in seen if step.total]
    assert [step.stage for step in ends] == ["CWE and OWASP 2021", "ATT&CK", "OWASP 2025", "curated tables"]
    assert all(step.done == step.total for step in ends)


def test_a_reader_keeps_its_graph_while_a_new_one_is_swapped_in(small: Sources, tmp_path: Path) -> None:
    path = tmp_path / "graph.sqlite"
    build(small, path)
    with Graph.open(path) as old:
        small.cwe.write_text(small.cwe.read_text().replace("Improper Input Validation", "Unread Post"))
        build(small, path)
        with Graph.open(path) as new:
            names = [node.name for graph in (old, new) if (node := graph.node("CWE-20"))]
    assert names == ["Improper Input Validation", "Unread Post"]


@pytest.mark.parametrize("content", [b"", b"not a graph", b"SQLite format 3\x00" + b"\x00" * 2000])
def test_a_file_that_is_no_graph_is_refused_with_the_remedy(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "graph.sqlite"
    path.write_bytes(content)
    with pytest.raises(KnowledgeError, match="casemate kb build"):
        Graph.open(path)


def test_a_truncated_graph_is_refused_or_says_so_when_it_is_read(small: Sources, tmp_path: Path) -> None:
    path = tmp_path / "graph.sqlite"
    build(small, path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])
    with pytest.raises(KnowledgeError, match="casemate kb build"), Graph.open(path) as graph:
        graph.census()


def test_an_absent_graph_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match="there is no graph"):
        Graph.open(tmp_path / "graph.sqlite")


def test_a_graph_that_cannot_be_written_is_an_error_in_one_line(small: Sources, tmp_path: Path) -> None:
    (tmp_path / "graph.sqlite").mkdir()
    with pytest.raises(KnowledgeError, match="cannot be written"):
        build(small, tmp_path / "graph.sqlite")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph.sqlite", "small"]


def test_the_real_graph_holds_every_live_entry_of_its_sources(real_graph: Graph) -> None:
    census = real_graph.census()
    assert census.nodes[Kind.WEAKNESS] == 938
    assert census.nodes[Kind.TECHNIQUE] == 691
    assert (census.nodes[Kind.TACTIC], census.nodes[Kind.MITIGATION], census.nodes[Kind.RISK]) == (14, 44, 20)
    assert (census.versions["CWE"], census.versions["ATT&CK"]) == ("4.14", "18.1")
    assert census.dangling == 0


@pytest.mark.parametrize("number", COMMON)
def test_a_common_weakness_touches_all_three_frameworks_and_enables_a_live_technique(
    real_graph: Graph, number: int
) -> None:
    cwe = f"CWE-{number}"
    assert {clause.framework for clause in tables.clauses(cwe)} >= {"GDPR", "HIPAA", "MLPS"}
    technique = real_graph.node(tables.technique(cwe))
    assert technique is not None
    assert (technique.kind, technique.state) == (Kind.TECHNIQUE, State.LIVE)
    curated = [e for e in real_graph.around(cwe, "enables") if e.kind is EdgeKind.CURATED]
    assert [(edge.end, bool(edge.note)) for edge in curated] == [(technique.id, True)]


def test_every_row_of_the_curated_tables_names_nodes_of_the_real_graph(real_graph: Graph) -> None:
    named = {id_ for _, id_ in tables.aliases()}
    named |= {id_ for row in tables.technique_rows() for id_ in (row.cwe, row.technique)}
    named |= {cwe for row in tables.clause_rows() for cwe in row.weaknesses}
    named |= {cwe for row in tables.risks() for cwe in row.weaknesses}
    assert {id_ for id_ in named if (node := real_graph.node(id_)) is None or node.state is not State.LIVE} == set()


def test_evidence_counts_its_cves_and_every_one_is_a_node(real_graph: Graph) -> None:
    edges = [e for e in real_graph.around("CWE-89", "enables") if e.kind is EdgeKind.EVIDENCE and e.end == "T1190"]
    assert [len(edge.support) for edge in edges] == [3]
    assert all(real_graph.node(cve) for edge in edges for cve in edge.support)


@pytest.mark.parametrize("rows", [tuple(tables.aliases()), tuple(tables.glossary().items())])
def test_no_name_stands_twice_in_a_table(rows: Sequence[tuple[str, str]]) -> None:
    folded = [term.casefold() for term, _ in rows]
    assert sorted(folded) == sorted(set(folded))
    assert all(term == term.strip() and value for term, value in rows)


def test_the_alias_table_covers_both_languages() -> None:
    terms = [term for term, _ in tables.aliases()]
    chinese = [term for term in terms if not term.isascii()]
    assert len(terms) >= 250
    assert min(len(chinese), len(terms) - len(chinese)) >= 100


def test_clauses_say_which_article_and_in_both_languages() -> None:
    for row in tables.clause_rows():
        assert row.title.isascii(), row
        assert not row.title_zh.isascii(), row
        assert row.framework in tables.VERSIONS


def test_an_unknown_weakness_has_no_clauses_and_no_technique() -> None:
    assert tables.clauses("CWE-0") == ()
    assert tables.technique("CWE-0") == ""
