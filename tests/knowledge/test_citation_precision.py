"""What is right is not reproached: every name, alias and edge of the graph, and sentences as analysts write them."""

from __future__ import annotations

import json

import pytest

from casemate.knowledge import citations
from casemate.knowledge.citations import Verdict
from casemate.knowledge.graph import Graph
from casemate.knowledge.node import Kind, Node

GROUPS = (Kind.VULNERABILITY, Kind.CATEGORY, Kind.VIEW, Kind.DETECTION)
RIGHT = ("H0", "unchecked")


def spelt(id_: str) -> str:
    if id_.startswith("Sigma"):
        return f"Sigma rule {id_.removeprefix('Sigma ')}"
    return f"OWASP {id_}" if id_[1:3].isdigit() and id_[0] == "A" else id_


def named(graph: Graph) -> list[Node]:
    return [node for kind in Kind if kind not in GROUPS for node in graph.nodes(kind) if node.name]


def reproached(text: str, graph: Graph) -> list[Verdict]:
    """Every fault but that a mapping is discouraged: that is right, however it is named."""
    return [verdict for verdict in citations.examine(text, graph) if verdict.grade not in (*RIGHT, "H5")]


@pytest.mark.parametrize(
    "form",
    [
        "{id}: {name}",
        "The issue {id} ({name}) was found.",
        "{name} ({id}) was found.",
        "{id} – {name}",
        "**{id}** — *{name}*",
    ],
)
def test_no_node_is_reproached_for_its_own_name(real_graph: Graph, form: str) -> None:
    text = "\n".join(form.format(id=spelt(node.id), name=node.name) for node in named(real_graph))
    assert reproached(text, real_graph) == []


@pytest.mark.parametrize("form", ["{id}：{name}", "存在 {name}（{id}）风险。", "{id}（{name}）", "{id} {name}"])
def test_no_node_is_reproached_for_its_chinese_name(real_graph: Graph, form: str) -> None:
    nodes = [node for node in named(real_graph) if node.name_zh]
    text = "\n".join(form.format(id=spelt(node.id), name=node.name_zh) for node in nodes)
    assert nodes
    assert reproached(text, real_graph) == []


@pytest.mark.parametrize("form", ["{id} ({name})", "{name} ({id})", "{id} {name} was found", "{id} 是 {name}"])
def test_no_node_is_reproached_for_an_alias_but_the_name_of_an_older_edition(real_graph: Graph, form: str) -> None:
    pairs = [(node.id, alias) for node in named(real_graph) for alias in real_graph.aliases(node.id)]
    text = "\n".join(form.format(id=spelt(id_), name=alias) for id_, alias in pairs)
    assert [verdict.reason for verdict in reproached(text, real_graph)] == ["called 'defense evasion' until 18.1"]


def test_no_node_is_reproached_in_a_table_or_an_object(real_graph: Graph) -> None:
    nodes = named(real_graph)
    rows = [f"| {spelt(node.id)} | {node.name.replace('|', '/')} |" for node in nodes]
    assert reproached("\n".join(("| ID | Name |", "|---|---|", *rows)), real_graph) == []
    assert reproached(json.dumps([{"id": spelt(node.id), "name": node.name} for node in nodes]), real_graph) == []


@pytest.mark.parametrize(
    ("relation", "forms"),
    [
        (
            "enables",
            ["{a} leads to {b}.", "{a} maps to {b}.", "{b} exploits {a}.", "{a} 可通过 {b} 利用。", "{a} → {b}"],
        ),
        ("attacked-by", ["{a} is exploited through {b}.", "{b} exploits {a}."]),
        ("carried-out-by", ["{a} maps to {b}."]),
        ("mitigates", ["{a} mitigates {b}.", "{b} is mitigated by {a}.", "{b} 的缓解措施包括 {a}。"]),
        ("achieves", ["{a} belongs to {b}.", "{a} ({b})", "{a} 属于 {b}。"]),
        ("has-member", ["{b} belongs to {a}.", "{a} includes {b}."]),
        ("child-of", ["{a} is a child of {b}.", "{a} 是 {b} 的子类。", "{b} is the parent of {a}."]),
        ("counters", ["{a} counters {b}."]),
        ("detects", ["{a} detects {b}."]),
        ("touches", ["{a} touches {b}.", "{a} 涉及 {b}。"]),
    ],
)
def test_no_edge_of_the_graph_is_reproached(real_graph: Graph, relation: str, forms: list[str]) -> None:
    statement = """
        SELECT start, "end" FROM edge
        WHERE relation = ? AND former = 0 AND (relation != 'has-member' OR start LIKE 'A%')
    """
    edges = real_graph.rows(statement, relation)[::3]
    assert edges
    for form in forms:
        text = "\n".join(form.format(a=spelt(a), b=spelt(b)) for a, b in edges)
        found = [verdict for verdict in reproached(text, real_graph) if verdict.grade != "H2"]
        assert found == [], form


SENTENCES = [
    "The endpoint concatenates user input into a query (CWE-89), which an attacker reaches through T1190.",
    "XSS can bypass CSRF tokens, so fix CWE-79 before CWE-352.",
    "CWE-352 (XSS can bypass its tokens) needs a SameSite cookie.",
    "SQL injection can lead to remote code execution (T1059).",
    "Path traversal in the download handler (T1005) reads local files.",
    "Weak passwords invite brute force (T1110), see CWE-521 and CWE-307.",
    "CWE-798: AWS Access Key In Source File",
    "CWE-89: User Lookup Builds Query From Request",
    "T1059.007: the payload is JavaScript delivered through XSS.",
    "The finding is CWE-22, i.e. path traversal; not CWE-23.",
    "CWE-79, CWE-89 and CWE-22 (XSS, SQL injection and path traversal) were found.",
    "CWE-89, CWE-79 (SQL injection, XSS) were found.",
    "T1078 (Valid Accounts) belongs to Initial Access, Persistence, Privilege Escalation and Stealth.",
    "The actor gained persistence with T1053.005 and moved laterally over T1021.001 (RDP).",
    "TA0001 Initial Access → TA0002 Execution → TA0003 Persistence",
    "T1190 → T1059 → T1486",
    "In the 2024 CWE Top 25, CWE-79 is first.",
    "CWE-200 is discouraged for mapping; use CWE-209 instead.",
    "CWE-89 does not lead to T1557.",
    "Does CWE-89 enable T1557?",
    "If CWE-89 led to T1557, we would see it.",
    "CWE-89 leads to data loss and T1557 is another matter.",
    "SQL injection (CWE-89) was used first. Later came T1557.",
    "CWE-121 is a stack-based buffer overflow, a kind of CWE-787 out-of-bounds write.",
    "CWE-564 (SQL Injection), CWE-80 (XSS), CWE-78 (Injection)",
    "Exploit Public-Facing Application (T1190) is listed under Initial Access.",
    "OWASP A01:2021 Broken Access Control moved up; A10:2021 SSRF was merged.",
    "CAPEC-66 (SQL Injection) exploits CWE-89.",
    "GDPR Article 32 requires security of processing; Article 33 requires notification within 72 hours.",
    "GDPR Art. 32 (encryption) and Art. 25 GDPR (data protection by design).",
    "CWE-312 (storing passwords in plain text) touches GDPR Art. 32(1)(a).",
    "See [CWE-89](https://cwe.mitre.org/data/definitions/89.html) and T1190.",
    "NIST SP 800-53 AC-2 Account Management, AC-6 Least Privilege and SI-10 Information Input Validation.",
    "see category CWE-310; the view CWE-1000",
    "该接口存在SQL注入漏洞（CWE-89），攻击者可利用 T1190 进入系统。",
    "登录接口缺少限速（CWE-307），可被撞库（T1110.004）。",
    "硬编码凭据（CWE-798）违反最小权限原则。",
    "CWE-79、CWE-89、CWE-22 分别是跨站脚本、SQL注入和路径遍历。",
    "攻击者先用钓鱼（T1566）获得初始访问（TA0001），随后用 PowerShell（T1059.001）执行。",
    "权限提升（TA0004）阶段使用 T1068。T1003.001（LSASS 内存）属于凭据访问战术。",
    "依据 GDPR 第三十二条第一款(b)项与第三十三条，应在 72 小时内通报。",
    "按照 GB/T 22239-2019 8.1.4.4 d) 的要求，应校验输入；等保 8.1.4.3 a) 要求开启安全审计。",
    "OWASP A03:2021（注入）",
    "CWE-89 是否导致 T1557？CWE-89 不会导致 T1557。",
    "TA0005（防御规避）与 TA0005 (Stealth)",
]


@pytest.mark.parametrize("text", SENTENCES)
def test_a_right_sentence_is_not_reproached(real_graph: Graph, text: str) -> None:
    assert [verdict for verdict in citations.examine(text, real_graph) if verdict.failed] == []
    assert citations.repair(text, real_graph)[0] == text


def test_the_name_of_a_case_is_not_taken_for_that_of_its_weakness(real_graph: Graph) -> None:
    text = "cveID,vulnerabilityName,cwes\nCVE-2021-44228,Apache Server Privilege Escalation Vulnerability,CWE-502\n"
    assert reproached(text, real_graph) == []
    assert reproached(json.dumps({"cwe": "CWE-502", "title": "Privilege Control In Export Function"}), real_graph) == []


def test_the_name_of_another_is_always_caught(real_graph: Graph) -> None:
    for kind in (Kind.WEAKNESS, Kind.TECHNIQUE, Kind.PATTERN, Kind.CONTROL):
        nodes = [node for node in real_graph.nodes(kind) if "(" not in node.id]
        half = len(nodes) // 2
        pairs = list(zip(nodes, nodes[half:] + nodes[:half], strict=True))
        text = "\n".join(f"{node.id} ({other.name})" for node, other in pairs if node.name != other.name)
        found = citations.examine(text, real_graph)
        assert sum(verdict.grade == "H4" for verdict in found) >= 0.98 * len(found), kind
