from __future__ import annotations

import pytest

from casemate.errors import KnowledgeError
from casemate.knowledge import joins
from casemate.knowledge.node import Edge, EdgeKind, Kind, Node, State
from casemate.knowledge.store import recency

OLD, NEW = ("ATT&CK", "18.1"), ("ATT&CK", "19.1")
KEV, CTID = ("CISA KEV", "2025-08-25"), ("CTID mappings of KEV", "2025-07-28")


def technique(id_: str, name: str = "", *, version: str = "19.1", state: State = State.LIVE) -> Node:
    return Node(id_, Kind.TECHNIQUE, name or id_, "ATT&CK", version, state=state)


def catalogue(*more: Node) -> dict[str, Node]:
    """Enough of a newest version that a few may be missing."""
    rest = [technique(f"T9{number:03}") for number in range(20)]
    weaknesses = [Node(f"CWE-{number}", Kind.WEAKNESS, f"Weakness {number}", "CWE", "9.1") for number in (1, 2)]
    pattern = Node("CAPEC-1", Kind.PATTERN, "A pattern", "CAPEC", "3.9")
    return {node.id: node for node in (*rest, *weaknesses, pattern, *more)}


def joined(nodes: dict[str, Node], *edges: Edge) -> dict[tuple[str, str, str, str], Edge]:
    kept = joins.retired(nodes, recency)
    found = joins.joined(kept, edges, recency=recency)
    return {(edge.start, edge.relation, edge.end, edge.kind): edge for edge in found}


def test_what_the_newest_version_lacks_is_gone_and_its_namesake_takes_its_place() -> None:
    nodes = catalogue(technique("T1", "Old habit", version="18.1"), technique("T2", "Old habit"))
    assert joins.retired(nodes, recency)["T1"].state is State.GONE
    assert ("T1", "replaced-by", "T2", EdgeKind.DERIVED) in joined(nodes)


def test_a_given_heir_counts_more_than_a_namesake() -> None:
    nodes = catalogue(technique("T1", "Old habit", version="18.1"), technique("T2", "Old habit"), technique("T3"))
    edges = joined(nodes, Edge("T1", "replaced-by", "T3", EdgeKind.CURATED, "curated", "1"))
    assert [key for key in edges if key[1] == "replaced-by"] == [("T1", "replaced-by", "T3", EdgeKind.CURATED)]


def test_two_namesakes_are_no_heir() -> None:
    nodes = catalogue(technique("T1", "Twin", version="18.1"), technique("T2", "Twin"), technique("T3", "Twin"))
    assert joined(nodes) == {}


def test_a_version_that_lacks_a_fifth_of_its_catalogue_is_refused() -> None:
    old = [technique(f"T8{number:03}", version="18.1") for number in range(20)]
    with pytest.raises(KnowledgeError, match=r"ATT&CK 19\.1 holds 20 of 40 entries of kind technique"):
        joins.retired(catalogue(*old), recency)


def test_an_edge_of_an_older_version_is_former_only_beside_a_newer_one_of_its_relation() -> None:
    nodes = catalogue(technique("T1"), Node("TA1", Kind.TACTIC, "Aim", *NEW), Node("TA2", Kind.TACTIC, "Goal", *NEW))
    edges = joined(
        nodes,
        Edge("T1", "achieves", "TA1", EdgeKind.OFFICIAL, *OLD),
        Edge("T1", "achieves", "TA2", EdgeKind.OFFICIAL, *NEW),
        Edge("T1", "child-of", "T9001", EdgeKind.OFFICIAL, *OLD),
    )
    assert {edge.end: edge.former for edge in edges.values()} == {"TA1": True, "TA2": False, "T9001": False}


def test_weakness_and_technique_are_joined_by_the_vulnerabilities_that_have_both() -> None:
    nodes = catalogue(technique("T1"))
    edges = joined(
        nodes,
        *(Edge("CWE-1", "observed-in", f"CVE-2020-000{n}", EdgeKind.EVIDENCE, *KEV) for n in (1, 2, 3)),
        Edge("CWE-2", "observed-in", "CVE-2020-0001", EdgeKind.EVIDENCE, "CWE", "9.1"),
        Edge("CVE-2020-0001", "way-in", "T1", EdgeKind.OFFICIAL, *CTID),
        Edge("CVE-2020-0001", "first-effect", "T1", EdgeKind.OFFICIAL, *CTID),
        Edge("CVE-2020-0002", "second-effect", "T1", EdgeKind.OFFICIAL, *CTID),
    )
    enabled = {key: edge for key, edge in edges.items() if key[1] == "enables"}
    assert list(enabled) == [("CWE-1", "enables", "T1", EdgeKind.EVIDENCE)], "only exploited ones count"
    edge = enabled["CWE-1", "enables", "T1", EdgeKind.EVIDENCE]
    assert edge.support == ("CVE-2020-0001", "CVE-2020-0002")
    assert edge.note == "way in 1, first effect 1, second effect 1"
    assert "2025-08-25" in edge.version
    assert "2025-07-28" in edge.version


def test_evidence_for_a_technique_that_left_counts_for_its_heir() -> None:
    nodes = catalogue(technique("T1", "Habit", version="18.1"), technique("T2", "Habit"))
    edges = joined(
        nodes,
        Edge("CWE-1", "observed-in", "CVE-2020-0001", EdgeKind.EVIDENCE, *KEV),
        Edge("CVE-2020-0001", "way-in", "T1", EdgeKind.OFFICIAL, *CTID),
    )
    heir = edges["CWE-1", "enables", "T2", EdgeKind.EVIDENCE]
    assert (heir.former, heir.support) == (False, ("CVE-2020-0001",))
    assert "recorded as T1" in heir.note
    assert edges["CWE-1", "enables", "T1", EdgeKind.EVIDENCE].former


def test_a_deprecated_pattern_leads_nowhere() -> None:
    steps = (
        Edge("CWE-1", "attacked-by", "CAPEC-1", EdgeKind.OFFICIAL, "CWE", "9.1"),
        Edge("CAPEC-1", "carried-out-by", "T9001", EdgeKind.OFFICIAL, "CAPEC", "3.9"),
    )
    nodes = catalogue()
    assert joined(nodes, *steps)["CWE-1", "enables", "T9001", EdgeKind.DERIVED].note == "through CAPEC-1"
    left = Node("CAPEC-1", Kind.PATTERN, "A pattern", "CAPEC", "3.9", state=State.DEPRECATED)
    assert ("CWE-1", "enables", "T9001", EdgeKind.DERIVED) not in joined(catalogue(left), *steps)


def test_a_circle_of_heirs_ends() -> None:
    nodes = catalogue(technique("T1", version="18.1"), technique("T2", version="18.1"))
    edges = joined(
        nodes,
        Edge("T1", "replaced-by", "T2", EdgeKind.OFFICIAL, *OLD),
        Edge("T2", "replaced-by", "T1", EdgeKind.OFFICIAL, *OLD),
        Edge("CWE-1", "enables", "T1", EdgeKind.CURATED, "curated", "1"),
    )
    assert edges["CWE-1", "enables", "T1", EdgeKind.CURATED].former


def test_evidence_names_only_the_sources_of_its_own_support() -> None:
    edges = joined(
        catalogue(),
        *(Edge("CWE-1", "observed-in", f"CVE-2020-000{n}", EdgeKind.EVIDENCE, *KEV) for n in (1, 2)),
        Edge("CVE-2020-0001", "way-in", "T9001", EdgeKind.OFFICIAL, *CTID),
        Edge("CVE-2020-0002", "way-in", "T9002", EdgeKind.OFFICIAL, "Another map", "2021"),
    )
    one, other = (edges["CWE-1", "enables", id_, EdgeKind.EVIDENCE] for id_ in ("T9001", "T9002"))
    assert one.source == "CISA KEV + CTID mappings of KEV"
    assert other.source == "CISA KEV + Another map"
