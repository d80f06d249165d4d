from __future__ import annotations

import json

import pytest

from casemate.knowledge import citations
from casemate.knowledge.gate.evidence import Material
from casemate.knowledge.graph import Graph

CODE = 'import os\n\ndef find(name):\n    query = "SELECT * FROM t WHERE n=\'" + name\n    cursor.execute(query)\n'
LOG = '{"EventRecordID": 101, "user": "a"}\n{"EventRecordID": 102, "message": "failed login for root"}\n'
MATERIAL = Material({"src/app.py": CODE, "log.jsonl": LOG})


def judged(text: str, graph: Graph) -> list[tuple[str, str]]:
    return [(verdict.mention.id, verdict.grade) for verdict in citations.examine(text, graph, material=MATERIAL)]


@pytest.mark.parametrize(
    "text",
    [
        "In `src/app.py:5`, `cursor.execute(query)` runs the query.",
        "app.py:3-5 holds `def find(name):` and `cursor.execute(query)`.",
        "src/app.py line 5; app.py 第 5 行; line 3 of app.py; app.py#L4",
        "第 2 条日志显示“failed login for root”。",
        "event #102 and EventRecordID 101",
        'The log says "failed login for root".',
        "`SELECT  *  FROM  t` stands there, white space aside. `FROM t WHERE n=`",
        "The line reads `SELECT * ... WHERE n=`.",
    ],
)
def test_a_right_quotation_or_place_is_not_reproached(real_graph: Graph, text: str) -> None:
    found = judged(text, real_graph)
    assert found
    assert {grade for _, grade in found} == {"H0"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The code reads `os.system(cmd)`.", [('"os.system(cmd)"', "E1")]),
        ('The log says "failed login for admin".', [('"failed login for admin"', "E1")]),
        ("日志显示“failed login for bob”。", [('"failed login for bob"', "E1")]),
        ("app.py:50 is wrong.", [("app.py:50", "E2")]),
        ("See other.py:3 for it.", [("other.py:3", "E2")]),
        ("app.py 第 9 行", [("app.py:9", "E2")]),
        ("event #999", [("event 999", "E2")]),
        ("In app.py:4 stands `cursor.execute(query)`.", [("app.py:4", "E2"), ('"cursor.execute(query)"', "H0")]),
    ],
)
def test_a_quotation_that_is_not_there_and_a_place_that_is_wrong_are_told(
    real_graph: Graph, text: str, expected: list[tuple[str, str]]
) -> None:
    assert judged(text, real_graph) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Use `cursor.execute(sql, (name,))` instead.",
        "应改为 `cursor.execute(sql, (name,))`。",
        "`yaml.safe_load()` and `query` are names.",
        "`CWE-89: SQL Injection` is how it is called.",
        "https://example.com/a.py:80/x and host.example.com:443 and 10.0.0.1:80",
        "Event ID 4625 is a kind of event.",
        'The so-called "best practice of the house" is another thing.',
    ],
)
def test_advice_names_and_addresses_are_no_quotations(real_graph: Graph, text: str) -> None:
    assert [verdict for verdict in judged(text, real_graph) if verdict[1].startswith("E")] == []


def test_without_material_nothing_is_said_of_quotations(real_graph: Graph) -> None:
    assert citations.examine("In other.py:3 stands `os.system(cmd)`.", real_graph) == ()


def test_places_and_snippets_of_a_report_are_checked_by_their_fields(real_graph: Graph) -> None:
    def result(uri: str, line: int, snippet: str) -> dict[str, object]:
        region = {"startLine": line, "snippet": {"text": snippet}}
        return {"locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}]}

    rows = [
        result("src/app.py", 5, "    cursor.execute(query)"),
        result("src/app.py", 4, "cursor.execute(query)"),
        result("src/app.py", 500, "def find(name):"),
        result("src/none.py", 1, "os.remove(path)"),
        {"file": "app.py", "line": 3},
    ]
    found = judged(json.dumps({"runs": [{"results": rows}]}), real_graph)
    assert found == [
        ("src/app.py:5", "H0"),
        ('"cursor.execute(query)"', "H0"),
        ("src/app.py:4", "E2"),
        ('"cursor.execute(query)"', "H0"),
        ("src/app.py:500", "E2"),
        ('"def find(name):"', "H0"),
        ("src/none.py:1", "E2"),
        ('"os.remove(path)"', "E1"),
        ("app.py:3", "H0"),
    ]


def test_exhibits_stand_among_the_citations_in_reading_order(real_graph: Graph) -> None:
    text = "CWE-89 in app.py:50; `os.system(cmd)` is CWE-99999."
    assert [grade for _, grade in judged(text, real_graph)] == ["H0", "E2", "E1", "H1"]
    assert citations.tally(citations.examine(text, real_graph, material=MATERIAL)).failed == 3
