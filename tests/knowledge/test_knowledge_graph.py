from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from casemate.errors import KnowledgeError
from casemate.knowledge.build import Progress, build
from casemate.knowledge.curated import tables
from casemate.knowledge.graph import Graph
from casemate.knowledge.node import EdgeKind, Kind, State
from fakes.small_sources import Small

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


def test_an_edge_to_nowhere_is_dropped_and_counted(small: Small, tmp_path: Path) -> None:
    report = build(small.sources, tmp_path / "graph.sqlite")
    with Graph.open(tmp_path / "graph.sqlite") as graph:
        assert ("CWE-89", "CWE-4242") not in {(e.start, e.end) for e in graph.around("CWE-89")}
        assert graph.census().dangling == 0
    assert report.dropped > 0


def test_a_build_of_unchanged_sources_keeps_the_file(small: Small, tmp_path: Path) -> None:
    path = tmp_path / "graph.sqlite"
    first = build(small.sources, path)
    stamp = path.stat().st_ino
    second = build(small.sources, path)
    assert (first.fresh, second.fresh) == (True, False)
    assert (first.nodes, first.edges) == (second.nodes, second.edges)
    assert path.stat().st_ino == stamp
    small.cwe.write_text(small.cwe.read_text().replace("All of the list.", "Another list."))
    assert build(small.sources, path).fresh


def test_the_same_sources_give_the_same_graph(small: Small, tmp_path: Path) -> None:
    contents = []
    for name in ("one.sqlite", "two.sqlite"):
        build(small.sources, tmp_path / name)
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]


def test_a_watcher_hears_every_stage_to_its_end(small: Small, tmp_path: Path) -> None:
    seen: list[Progress] = []
    build(small.sources, tmp_path / "graph.sqlite", observe=seen.append)
    ends = [step for step in seen if step.total]
    assert [step.stage for step in ends] == ["curated tables", "CWE and OWASP 2021", "ATT&CK"]
    assert all(step.done == step.total for step in ends)


def test_a_reader_keeps_its_graph_while_a_new_one_is_swapped_in(small: Small, tmp_path: Path) -> None:
    path = tmp_path / "graph.sqlite"
    build(small.sources, path)
    with Graph.open(path) as old:
        small.cwe.write_text(small.cwe.read_text().replace("Improper Input Validation", "Unread Post"))
        build(small.sources, path)
        with Graph.open(path) as new:
            names = [node.name for graph in (old, new) if (node := graph.node("CWE-20"))]
    assert names == ["Improper Input Validation", "Unread Post"]


@pytest.mark.parametrize("content", [b"", b"not a graph", b"SQLite format 3\x00" + b"\x00" * 2000])
def test_a_file_that_is_no_graph_is_refused_with_the_remedy(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "graph.sqlite"
    path.write_bytes(content)
    with pytest.raises(KnowledgeError, match="casemate kb build"):
        Graph.open(path)


def test_a_truncated_graph_is_refused_or_says_so_when_it_is_read(small: Small, tmp_path: Path) -> None:
    path = tmp_path / "graph.sqlite"
    build(small.sources, path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])
    with pytest.raises(KnowledgeError, match="casemate kb build"), Graph.open(path) as graph:
        graph.census()


def test_an_absent_graph_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError, match="there is no graph"):
        Graph.open(tmp_path / "graph.sqlite")


def test_a_graph_that_cannot_be_written_is_an_error_in_one_line(small: Small, tmp_path: Path) -> None:
    (tmp_path / "graph.sqlite").mkdir()
    with pytest.raises(KnowledgeError, match="cannot be written"):
        build(small.sources, tmp_path / "graph.sqlite")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph.sqlite", "small"]


def test_the_real_graph_holds_every_live_entry_of_the_newest_version_of_its_sources(real_graph: Graph) -> None:
    census = real_graph.census()
    assert (census.nodes[Kind.WEAKNESS], census.nodes[Kind.TECHNIQUE], census.nodes[Kind.TACTIC]) == (944, 697, 15)
    assert (census.nodes[Kind.MITIGATION], census.nodes[Kind.RISK]) == (44, 20)
    assert (census.versions["CWE"], census.versions["ATT&CK"]) == (("4.19.1", "4.14"), ("19.1", "18.1"))
    assert census.dangling == 0


def test_the_real_graph_holds_every_layer(real_graph: Graph) -> None:
    census = real_graph.census()
    assert (census.nodes[Kind.CONTROL], census.nodes[Kind.COUNTERMEASURE], census.nodes[Kind.DETECTION]) == (
        1189,
        250,
        3754,
    )
    clauses = real_graph.nodes(Kind.CLAUSE)
    articles = [node for node in clauses if re.fullmatch(r"GDPR Art\. \d+", node.id)]
    points = [node for node in clauses if re.fullmatch(r"MLPS 8\.1\.\d+\.\d+", node.id)]
    items = [node for node in clauses if re.fullmatch(r"MLPS 8\.1\.\d+\.\d+ [a-z]\)", node.id)]
    alone = [node for node in points if not any(item.id.startswith(f"{node.id} ") for item in items)]
    assert (len(articles), len(points), len(items) + len(alone)) == (99, 71, 211)
    standards = [node.id for node in clauses if node.id.startswith("HIPAA 164.3")]
    assert len(standards) >= 90


def test_both_versions_of_a_catalogue_stand_side_by_side(real_graph: Graph) -> None:
    assert [(edition.version, edition.name) for edition in real_graph.editions("TA0005")] == [
        ("19.1", "Stealth"),
        ("18.1", "Defense Evasion"),
    ]
    entry = real_graph.node("CWE-89")
    assert entry is not None
    assert (entry.version, entry.described) == ("4.19.1", "4.14")


DROPPED = {
    "T1562": "T1685", "T1562.001": "T1685", "T1562.002": "T1685.001", "T1562.003": "T1690", "T1562.004": "T1686",
    "T1562.006": "T1685", "T1562.007": "T1686.001", "T1562.008": "T1685.002", "T1562.009": "T1688",
    "T1562.010": "T1689", "T1562.011": "T1685.003", "T1562.012": "T1685.004", "T1562.013": "T1686.002",
    "T1070.001": "T1685.005", "T1070.002": "T1685.006", "T1656": "T1684.001", "T1672": "T1684.002",
}  # fmt: skip


@pytest.mark.parametrize(("old", "new"), DROPPED.items())
def test_a_technique_that_a_newer_version_dropped_is_translated(real_graph: Graph, old: str, new: str) -> None:
    node, heir = real_graph.node(old), real_graph.node(new)
    assert node is not None
    assert heir is not None
    assert (node.state, heir.state) == (State.GONE, State.LIVE)
    assert [edge.end for edge in real_graph.around(old, "replaced-by") if edge.start == old] == [new]


def test_every_technique_that_left_is_translated(real_graph: Graph) -> None:
    left = [row[0] for row in real_graph.rows("SELECT id FROM node WHERE kind = 'technique' AND state = 'gone'")]
    assert sorted(left) == sorted(DROPPED)


def test_evidence_recorded_with_a_dropped_technique_counts_for_its_heir(real_graph: Graph) -> None:
    ends = {edge.end: edge for edge in real_graph.around("CWE-20", "enables")}
    assert "T1562.001" not in ends
    assert ends["T1685"].support == ("CVE-2023-22952",)
    assert "recorded as T1562.001" in ends["T1685"].note


def test_a_relation_that_a_newer_version_no_longer_has_is_former(real_graph: Graph) -> None:
    now = {edge.end for edge in real_graph.around("T1548", "achieves")}
    ever = {edge.end: edge.former for edge in real_graph.around("T1548", "achieves", former=True)}
    assert now == {"TA0004"}
    assert ever == {"TA0004": False, "TA0005": True}


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
    named |= set(tables.names_zh()) | {heir for _, heir, _ in tables.successors()}
    assert {id_ for id_ in named if (node := real_graph.node(id_)) is None or node.state is not State.LIVE} == set()


@pytest.mark.parametrize(
    ("cwe", "technique", "ways_in"),
    [
        ("CWE-78", "T1190", 12),
        ("CWE-22", "T1190", 12),
        ("CWE-20", "T1190", 13),
        ("CWE-502", "T1190", 14),
        ("CWE-94", "T1190", 10),
        ("CWE-287", "T1190", 7),
        ("CWE-306", "T1190", 7),
        ("CWE-918", "T1190", 5),
        ("CWE-89", "T1190", 3),
        ("CWE-79", "T1190", 2),
        ("CWE-79", "T1204.001", 4),
        ("CWE-416", "T1068", 7),
        ("CWE-352", "T1566.002", 1),
    ],
)
def test_evidence_counts_its_cves_and_every_one_is_a_node(
    real_graph: Graph, cwe: str, technique: str, ways_in: int
) -> None:
    around = real_graph.around(cwe, "enables")
    edges = [edge for edge in around if edge.kind is EdgeKind.EVIDENCE and edge.end == technique]
    assert len(edges) == 1
    assert f"way in {ways_in}," in edges[0].note
    assert all(real_graph.node(cve) for cve in edges[0].support)


@pytest.mark.parametrize("number", [89, 79, 78, 22, 502, 918, 611, 352, 306])
def test_the_weaknesses_that_patterns_lead_nowhere_have_counted_and_reasoned_techniques(
    real_graph: Graph, number: int
) -> None:
    kinds = {edge.kind for edge in real_graph.around(f"CWE-{number}", "enables")}
    assert {EdgeKind.EVIDENCE, EdgeKind.CURATED} <= kinds
    assert EdgeKind.DERIVED not in kinds


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
