"""Every grade in every form: prose in both languages, a table, CSV, JSON and SARIF."""

from __future__ import annotations

import json

import pytest

from casemate.knowledge import citations
from casemate.knowledge.graph import Graph

RULE = "0022869c-49f7-4ff2-ba03-85ac42ddac58"


def grades(text: str, graph: Graph) -> dict[str, str]:
    """Id → grade, the wrong ones winning."""
    found: dict[str, str] = {}
    for verdict in citations.examine(text, graph):
        if verdict.failed or verdict.mention.id not in found:
            found[verdict.mention.id] = verdict.grade
    return found


def faults(text: str, graph: Graph) -> list[tuple[str, str]]:
    return [(verdict.mention.id, verdict.grade) for verdict in citations.examine(text, graph) if verdict.failed]


def table(*rows: str) -> str:
    head, *body = rows
    rule = "|".join("---" for _ in head.split("|"))
    return "\n".join(f"| {row} |" for row in (head, rule, *body))


def sarif(text: str) -> str:
    return json.dumps({"version": "2.1.0", "runs": [{"results": [{"ruleId": "r", "message": {"text": text}}]}]})


FAULTS = [
    ("the weakness is CWE-99999", "CWE-99999", "H1"),
    ("弱点是 CWE-99999", "CWE-99999", "H1"),
    ("CVE-1898-1234 was used", "CVE-1898-1234", "H1"),
    ("CVE-2021-123 was used", "CVE-2021-123", "H1"),
    ("GDPR Article 132", "GDPR Art. 132", "H1"),
    ("GDPR 第32条第9款", "GDPR Art. 32(9)", "H1"),
    ("HIPAA §164.312(f)", "HIPAA 164.312(f)", "H1"),
    ("等保 8.1.4.99", "MLPS 8.1.4.99", "H1"),
    ("ASVS V1.2.99", "ASVS V1.2.99", "H1"),
    ("NIST SP 800-53 AC-99", "NIST AC-99", "H1"),
    ("T1059.999", "T1059.999", "H1"),
    ("OWASP A12", "A12:2025", "H1"),
    ("T1562.001 ran", "T1562.001", "H2"),
    ("使用了 T1064", "T1064", "H2"),
    ("CWE-132", "CWE-132", "H2"),
    ("A1:2017", "A01:2017", "H3"),
    ("OWASP Top 10 2013 A1", "A01:2013", "H3"),
    ("CWE-79 is SQL injection.", "CWE-79", "H4"),
    ("CWE-79 是SQL注入。", "CWE-79", "H4"),
    ("SQL注入漏洞（CWE-79）", "CWE-79", "H4"),
    ("SQL Injection: CWE-79", "CWE-79", "H4"),
    ("The bug is an SQL injection vulnerability (CWE-79).", "CWE-79", "H4"),
    ("CWE-787: Use of Hard-coded Credentials", "CWE-787", "H4"),
    ("TA0005 Defense Evasion", "TA0005", "H4"),
    ("NIST AC-6 (Account Management)", "NIST AC-6", "H4"),
    ("M1013 (Network Segmentation)", "M1013", "H4"),
    ("D3-CH (Agent Authentication)", "D3-CH", "H4"),
    ("CAPEC-66 (Cross-Site Scripting)", "CAPEC-66", "H4"),
    ("mapped to CWE-310", "CWE-310", "H5"),
    ("映射到 CWE-20", "CWE-20", "H5"),
    ("CWE-89 leads to T1557.", "CWE-89", "H6"),
    ("CWE-89 可导致 T1557。", "CWE-89", "H6"),
    ("CWE-89 violates GDPR Article 32(1)(b).", "CWE-89", "H6"),
    ("CWE-89 违反 GDPR 第32条。", "CWE-89", "H6"),
    (f"Sigma rule {RULE} detects T1557.", f"Sigma {RULE}", "H6"),
    ("T1190 is a Persistence technique.", "T1190", "H7"),
    ("T1190 属于持久化战术。", "T1190", "H7"),
    ("T1486 (TA0001)", "T1486", "H7"),
    ("CWE-89 belongs to A01:2021.", "CWE-89", "H7"),
    ("CWE-89 属于 OWASP A02:2025。", "CWE-89", "H7"),
    ("CWE-89 is a child of CWE-200.", "CWE-89", "H7"),
    ("CWE-89 是 CWE-200 的子类。", "CWE-89", "H7"),
    ("CWE-79 is the parent of CWE-89.", "CWE-79", "H7"),
    ("T1059.001 is a sub-technique of T1055.", "T1059.001", "H7"),
    ("GDPR Art. 33 (Security of processing)", "GDPR Art. 33", "H7"),
    ("GDPR Article 32 (Right to erasure)", "GDPR Art. 32", "H7"),
    ("MLPS 8.1.4.3 a) 入侵防范", "MLPS 8.1.4.3 a)", "H7"),
    ("HIPAA 164.312(b) (Transmission security)", "HIPAA 164.312(b)", "H7"),
]


@pytest.mark.parametrize(("text", "id_", "grade"), FAULTS)
def test_a_fault_has_its_grade_in_prose_and_in_the_message_of_a_report(
    real_graph: Graph, text: str, id_: str, grade: str
) -> None:
    assert faults(text, real_graph) == [(id_, grade)]
    assert faults(sarif(text), real_graph) == [(id_, grade)]
    assert faults(json.dumps({"text": text}, ensure_ascii=False), real_graph) == [(id_, grade)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (table("CWE|Name", "CWE-99999|Anything"), [("CWE-99999", "H1")]),
        (table("Technique", "T1064"), [("T1064", "H2")]),
        (table("OWASP", "A1:2017"), [("A01:2017", "H3")]),
        (table("CWE|Name", "CWE-89|Cross-site Scripting", "CWE-79|跨站脚本"), [("CWE-89", "H4")]),
        (table("编号|名称", "CWE-89|跨站脚本", "T1110|暴力破解"), [("CWE-89", "H4")]),
        (table("Tactic ID|Tactic", "TA0005|Defense Evasion"), [("TA0005", "H4")]),
        (table("CWE|Severity", "CWE-310|high"), [("CWE-310", "H5")]),
        (table("CWE|Maps to", "CWE-89|T1557", "CWE-89|T1190"), [("CWE-89", "H6")]),
        (table("Technique|Mitigations", "T1190|M1048, M1013"), [("T1190", "H6")]),
        (table("Technique|Tactic", "T1190|Persistence", "T1078|Persistence"), [("T1190", "H7")]),
        (table("Technique|Tactic", "T1190|TA0003"), [("T1190", "H7")]),
        (table("CWE|OWASP", "CWE-89|A01:2021", "CWE-79|A03:2021"), [("CWE-89", "H7")]),
        (table("CWE|Parent", "CWE-89|CWE-200", "CWE-89|CWE-943"), [("CWE-89", "H7")]),
        (table("Clause|Title", "GDPR Art. 33|Security of processing"), [("GDPR Art. 33", "H7")]),
        ("cwe,name\nCWE-79,Path Traversal\nCWE-89,SQL Injection\n", [("CWE-79", "H4")]),
        ('cwe\tname\tnote\nCWE-79\t"Path Traversal"\tx\nCWE-89\tSQL Injection\ty\n', [("CWE-79", "H4")]),
        ("technique,tactic\nT1190,Persistence\n", [("T1190", "H7")]),
    ],
)
def test_a_fault_has_its_grade_in_a_row_of_a_table(
    real_graph: Graph, text: str, expected: list[tuple[str, str]]
) -> None:
    assert faults(text, real_graph) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"cwe": 99999}, [("CWE-99999", "H1")]),
        ({"cwe_ids": ["89", "99999"]}, [("CWE-99999", "H1")]),
        ({"CWE": [79, 99999]}, [("CWE-99999", "H1")]),
        ({"issue_cwe": {"id": 99999, "link": ""}}, [("CWE-99999", "H1")]),
        ({"technique_id": "T1064"}, [("T1064", "H2")]),
        ({"owasp": "A1:2017"}, [("A01:2017", "H3")]),
        ({"cweId": 79, "cweName": "SQL Injection"}, [("CWE-79", "H4")]),
        ({"id": "CWE-79", "name": "SQL Injection"}, [("CWE-79", "H4")]),
        ({"technique_id": "T1059.001", "technique_name": "JavaScript"}, [("T1059.001", "H4")]),
        ({"CWE-79": "SQL Injection"}, [("CWE-79", "H4")]),
        ({"cwe": {"id": "CWE-79", "name": "SQL\u6ce8\u5165"}}, [("CWE-79", "H4")]),
        ({"cwe": "CWE-310"}, [("CWE-310", "H5")]),
        ({"cwe": "CWE-89", "mapped_technique": "T1557"}, [("CWE-89", "H6")]),
        ({"technique": "T1190", "mitigations": ["M1048", "M1013"]}, [("T1190", "H6")]),
        ({"technique_id": "T1190", "tactic": "persistence"}, [("T1190", "H7")]),
        ({"technique_id": "T1190", "tactic_id": "TA0003"}, [("T1190", "H7")]),
        ({"cwe": "CWE-89", "owasp": "A01:2021-Broken Access Control"}, [("CWE-89", "H7")]),
        ({"cwe": "CWE-89", "parent": "CWE-200"}, [("CWE-89", "H7")]),
        ({"clause": "GDPR Art. 33", "clause_title": "Security of processing"}, [("GDPR Art. 33", "H7")]),
    ],
)
def test_a_fault_has_its_grade_in_an_object(real_graph: Graph, value: object, expected: list[tuple[str, str]]) -> None:
    for text in (json.dumps(value), json.dumps([value], indent=2), f"{json.dumps(value)}\n{json.dumps(value)}\n"):
        assert dict.fromkeys(faults(text, real_graph)) == dict.fromkeys(expected)


def test_sarif_names_weaknesses_in_tags_relationships_and_taxa(real_graph: Graph) -> None:
    rule = {
        "id": "r1",
        "properties": {"tags": ["security", "external/cwe/cwe-089", "external/cwe/cwe-99998"]},
        "relationships": [{"target": {"id": "99997", "toolComponent": {"name": "CWE"}}, "kinds": ["superset"]}],
    }
    taxa = [{"id": "79", "name": "SQL Injection"}, {"id": "22", "name": "Path Traversal"}, {"id": "99996"}]
    result = {"ruleId": "r1", "taxa": [{"id": "310", "toolComponent": {"name": "CWE"}}]}
    other = {"name": "Rules of a house", "taxa": [{"id": "99995"}]}
    run = {"tool": {"driver": {"name": "x", "rules": [rule]}}, "taxonomies": [{"name": "CWE", "taxa": taxa}, other]}
    text = json.dumps({"version": "2.1.0", "runs": [{**run, "results": [result]}]}, indent=1)
    assert grades(text, real_graph) == {
        "CWE-89": "H0",
        "CWE-99998": "H1",
        "CWE-99997": "H1",
        "CWE-79": "H4",
        "CWE-22": "H0",
        "CWE-99996": "H1",
        "CWE-310": "H5",
    }


def test_a_value_keeps_its_place_where_escapes_stand_before_it(real_graph: Graph) -> None:
    value = {"a": '\u8de8\u7ad9\u811a\u672c\n"x" CWE-99999', "url": "https://cwe.mitre.org/data/definitions/99998.html"}
    text = json.dumps(value).replace("/", "\\/")
    found = citations.examine(text, real_graph)
    assert [text[verdict.mention.start : verdict.mention.end].replace("\\", "") for verdict in found] == [
        "CWE-99999",
        "cwe.mitre.org/data/definitions/99998.html",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "HIPAA §164.502(a)",
        "MLPS 7.1.4.4",
        "CVE-2099-12345",
        "T0831 TA0101 M0801",
        "the mobile technique T1404",
        "CAPEC-152",
        "ASVS v4.0.3-5.3.4",
        "Sigma rule ffffffff-ffff-4fff-8fff-ffffffffffff",
    ],
)
def test_what_the_graph_does_not_hold_is_told_as_unchecked(real_graph: Graph, text: str) -> None:
    assert set(grades(text, real_graph).values()) == {"unchecked"}


def test_a_chapter_of_which_the_graph_holds_the_parts_is_right(real_graph: Graph) -> None:
    assert grades("MLPS 8.1.4 and ASVS V1", real_graph) == {"MLPS 8.1.4": "H0", "ASVS V1": "H0"}


def test_a_class_without_a_year_is_of_the_newest_list_whose_name_fits(real_graph: Graph) -> None:
    text = "OWASP A03 (Injection), OWASP A05: Injection, OWASP A01"
    assert grades(text, real_graph) == {"A03:2021": "H0", "A05:2025": "H0", "A01:2025": "H0"}


def test_the_class_of_an_older_list_is_named_from_the_categories(real_graph: Graph) -> None:
    (verdict,) = citations.examine("A7:2017", real_graph)
    assert (verdict.grade, verdict.name, verdict.version) == ("H3", "Cross-Site Scripting (XSS)", "2017")


def test_one_mention_has_one_verdict_the_first_in_order(real_graph: Graph) -> None:
    text = "CWE-132 (Path Traversal) leads to T1557. CWE-79 (SQL Injection) belongs to A01:2021."
    assert faults(text, real_graph) == [("CWE-132", "H2"), ("CWE-79", "H4")]


def test_ten_rows_with_six_shifted_names_and_one_unknown_id(real_graph: Graph) -> None:
    rows = [
        ("CWE-79", "SQL注入"),
        ("CWE-89", "跨站脚本"),
        ("CWE-22", "Cross-Site Request Forgery (CSRF)"),
        ("CWE-352", "Path Traversal"),
        ("CWE-78", "Deserialization of Untrusted Data"),
        ("CWE-502", "OS Command Injection"),
        ("CWE-99999", "Invented Weakness"),
        ("CWE-287", "Improper Authentication"),
        ("CWE-798", "硬编码凭据"),
        ("CWE-611", "XXE"),
    ]
    for text in (
        table("CWE|Name", *("|".join(row) for row in rows)),
        "cwe,name\n" + "\n".join(",".join(row) for row in rows),
        json.dumps([{"cwe": id_, "name": name} for id_, name in rows], ensure_ascii=False),
    ):
        found = [verdict.grade for verdict in citations.examine(text, real_graph)]
        assert found == ["H4"] * 6 + ["H1"] + ["H5"] + ["H0"] * 2  # CWE-287 is rightly named, and discouraged


def test_discouraged_and_category_are_told_apart(real_graph: Graph) -> None:
    found = {v.mention.id: v for v in citations.examine("CWE-200, CWE-20 and CWE-310 were assigned.", real_graph)}
    assert {id_: (v.grade, v.reason) for id_, v in found.items()} == {
        "CWE-200": ("H5", "mapping to it is discouraged"),
        "CWE-20": ("H5", "mapping to it is discouraged"),
        "CWE-310": ("H5", "a category, not a weakness"),
    }
    assert all(len(v.proposals) == 3 for v in found.values())


def test_proposals_for_a_wide_weakness_follow_the_words_of_the_sentence(real_graph: Graph) -> None:
    (verdict,) = citations.examine("CWE-200: the error message shows the stack trace", real_graph)
    assert verdict.proposals[0] == "CWE-209"
    for id_ in verdict.proposals:
        node = real_graph.node(id_)
        assert node is not None
        assert node.usage in ("Allowed", "Allowed-with-Review")


def test_proposals_name_what_is_right(real_graph: Graph) -> None:
    text = "T1002 ran. CWE-79 (SQL Injection). T1190 (Persistence). "
    text += "CWE-89 belongs to A01:2021. CWE-99999. CWE-89 leads to T1557."
    found = [verdict.proposals for verdict in citations.examine(text, real_graph) if verdict.failed]
    assert found[0] == ("T1560",)
    assert found[1][0].startswith("Improper Neutralization of Input")
    assert found[2:] == [("TA0001",), ("A03:2021",), (), ()]


def test_rates_name_their_denominator(real_graph: Graph) -> None:
    tally = citations.tally(citations.examine("CWE-89 CWE-79 CWE-99999 CVE-2099-12345", real_graph))
    assert (tally.citations, tally.grades) == (4, {"H0": 2, "H1": 1, "unchecked": 1})
    assert tally.per_100 == {"H0": 50.0, "H1": 25.0, "unchecked": 25.0}
    assert (tally.failed, tally.failed_per_100) == (1, 25.0)
    assert citations.tally(()).failed_per_100 == 0.0
