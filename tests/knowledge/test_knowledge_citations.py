from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casemate.knowledge import citations
from casemate.knowledge.gate import mentions
from casemate.knowledge.graph import Graph
from casemate.knowledge.node import Kind


def grades(text: str, graph: Graph) -> list[tuple[str, str]]:
    return [(verdict.mention.id, verdict.grade) for verdict in citations.examine(text, graph)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CWE-89, CWE 79, cwe_22 and CWE：611", ["CWE-89", "CWE-79", "CWE-22", "CWE-611"]),
        ("tags: external/cwe/cwe-089", ["CWE-89"]),
        ("https://cwe.mitre.org/data/definitions/79.html", ["CWE-79"]),
        ("https://attack.mitre.org/techniques/T1059/007/", ["T1059.007"]),
        ("T1190、T1059.007，战术TA0001，缓解M1013", ["T1190", "T1059.007", "TA0001", "M1013"]),
        ("attack.t1059.001", ["T1059.001"]),
        ("A03:2021-Injection, A5:2025", ["A03:2021", "A05:2025"]),
        ("CAPEC-66 cve-2021-44228", ["CAPEC-66", "CVE-2021-44228"]),
        ("CWE 4.14, XT1190, T11901, SHA-1, M10, CWE-2021-1234, T1190x, BA03:2021", []),
    ],
)
def test_identifiers_are_found_however_they_are_spelt(text: str, expected: list[str]) -> None:
    assert [mention.id for mention in mentions.find(text)] == expected


@pytest.mark.parametrize(
    ("typed", "id_"),
    [("cwe-89", "CWE-89"), (" t1059.007 ", "T1059.007"), ("ta0001", "TA0001"), ("a03:2021", "A03:2021"), ("x", "x")],
)
def test_a_typed_id_is_brought_to_its_canonical_spelling(typed: str, id_: str) -> None:
    assert mentions.canonical(typed) == id_


@pytest.mark.parametrize(
    "text",
    [
        "CWE-89: Improper Neutralization of Special Elements used in an SQL Command ('SQL Injection')",
        "CWE-89 (SQL injection) lets strangers in.",
        "The query is open to SQL Injection (CWE-89).",
        "存在 SQL 注入（CWE-89）风险，应使用参数化查询。",
        "CWE-79：跨站脚本攻击",
        "CWE-22 and CWE-78 path traversal and command injection",
        "CWE-89, CWE-79 跨站脚本",
        "CWE-89: the query is built from the request",
        "T1190 (Initial Access)",
        "T1190 (TA0001) through CWE-89",
        "T1059.007: JavaScript",
        "see category CWE-264",
        "类别 CWE-264 下的弱点",
        "OWASP A03:2021 – Injection and A05:2025 Injection",
        "CAPEC-66: SQL Injection",
        "CVE-2023-34362 is a case of CWE-89",
        "CWE-80 is a kind of XSS",
        "CWE-564 (SQL Injection)",
        '{"cwe": "CWE-352", "name": "Cross-Site Request Forgery (CSRF)"}',
    ],
)
def test_a_right_citation_is_not_reproached(real_graph: Graph, text: str) -> None:
    assert {grade for _, grade in grades(text, real_graph)} == {"H0"}
    assert citations.repair(text, real_graph)[0] == text


@pytest.mark.parametrize(
    ("text", "id_", "grade"),
    [
        ("CWE-99999 is new", "CWE-99999", "H1"),
        ("T1999.001", "T1999.001", "H1"),
        ("CAPEC-99999", "CAPEC-99999", "H1"),
        ("A11:2021", "A11:2021", "H1"),
        ("CWE-132 is old", "CWE-132", "H2"),
        ("T1064 scripting", "T1064", "H2"),
        ("CWE-1427 of the newest list", "CWE-1427", "H0"),
        ("T1685 of the newest matrix", "T1685", "H0"),
        ("CWE-79 (SQL Injection)", "CWE-79", "H4"),
        ("SQL Injection (CWE-79)", "CWE-79", "H4"),
        ("跨站脚本（CWE-89）", "CWE-89", "H4"),
        ("这是 CWE-79 SQL注入 漏洞", "CWE-79", "H4"),
        ("CWE-89: Broken Object Access Handling", "CWE-89", "H4"),
        ("T1059.001: JavaScript", "T1059.001", "H4"),
        ('{"cwe": "CWE-89", "name": "Path Traversal"}', "CWE-89", "H4"),
        ("A03:2021 – Broken Access Control", "A03:2021", "H4"),
        ("the weakness is CWE-264", "CWE-264", "H5"),
        ("mapped to CWE-1000", "CWE-1000", "H5"),
        ("CWE-20 again", "CWE-20", "H5"),
        ("T1190 (Persistence)", "T1190", "H7"),
        ("CVE-2099-12345", "CVE-2099-12345", "unchecked"),
        ("T0831 of control systems", "T0831", "unchecked"),
        ("A1:2017", "A01:2017", "H3"),
    ],
)
def test_each_kind_of_fault_has_its_grade(real_graph: Graph, text: str, id_: str, grade: str) -> None:
    assert grades(text, real_graph) == [(id_, grade)]


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ("a hole (CWE-99999) in it", "a hole in it"),
        ("风险（CWE-99999）很高", "风险很高"),
        ("See CWE-99999.", "See [unverified id]."),
        ("见 CWE-99999。", "见 （编号未核实）。"),
        ("CWE-132 is old", "CWE-170 is old"),
        ("T1002 ran", "T1560 ran"),
        ("这是 CWE-79 SQL注入 漏洞", "这是 CWE-79 跨站脚本 漏洞"),
        ("T1059.001 (JavaScript)", "T1059.001 (PowerShell)"),
        ("T1190 (Persistence)", "T1190 (Initial Access)"),
        ("CWE-20 is wide", "CWE-20 is wide"),
        ("nothing is cited", "nothing is cited"),
    ],
)
def test_a_failed_citation_is_corrected_or_dropped(real_graph: Graph, text: str, repaired: str) -> None:
    assert citations.repair(text, real_graph)[0] == repaired


def test_the_name_of_every_weakness_and_technique_fits_its_id(real_graph: Graph) -> None:
    nodes = [*real_graph.nodes(Kind.WEAKNESS), *real_graph.nodes(Kind.TECHNIQUE)]
    text = "\n".join(f"{node.id}: {node.name}" for node in nodes)
    wrong = [verdict for verdict in citations.examine(text, real_graph) if verdict.grade not in ("H0", "H5")]
    assert wrong == []


def test_the_name_of_the_next_weakness_never_fits(real_graph: Graph) -> None:
    nodes = real_graph.nodes(Kind.WEAKNESS)[:300]
    text = "\n".join(f"{node.id} ({other.name})" for node, other in zip(nodes, nodes[150:], strict=False))
    found = citations.examine(text, real_graph)
    caught = sum(verdict.grade == "H4" for verdict in found)
    assert caught >= 0.95 * len(found)


def test_a_check_gives_each_id_once_with_its_worst_grade_then_what_was_only_offered(real_graph: Graph) -> None:
    text = "CWE-89 is SQL injection. CWE-89 (Path Traversal)"
    found = citations.check(text, real_graph, offered=["CWE-89", "CWE-79", "x"])
    assert [(c.id, c.grade, c.cited) for c in found] == [("CWE-89", "H4", True), ("CWE-79", "H0", False)]
    assert found[1].name.startswith("Improper Neutralization of Input")


def test_the_citations_of_a_repair_are_those_that_were_found(real_graph: Graph) -> None:
    _, found = citations.repair("CWE-99999 and CWE-89", real_graph)
    assert [(c.id, c.grade) for c in found] == [("CWE-99999", "H1"), ("CWE-89", "H0")]


IDS = ["CWE-89", "CWE-99999", "CWE-132", "CWE-264", "T1190", "T1064", "A03:2021"]
NAMES = ["SQL注入", "SQL injection", "Persistence", "Broken Object Access"]
MARKS = ["（", "）", "(", ")", ": ", " - ", "，", ". ", "\n", '"', "ﬁ", "…", "\u0000", " "]
PIECES = st.sampled_from(IDS + NAMES + MARKS)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(PIECES | st.text(max_size=6), max_size=12))
def test_no_text_breaks_the_gate_and_no_invented_id_survives_it(real_graph: Graph, parts: list[str]) -> None:
    repaired, _ = citations.repair("".join(parts), real_graph)
    left = {verdict.grade for verdict in citations.examine(repaired, real_graph)}
    assert not left & {"H1", "H3"}
