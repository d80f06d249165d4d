from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casemate.knowledge import citations
from casemate.knowledge.graph import Graph

BREACH = "Notification of a personal data breach to the supervisory authority"


@pytest.mark.parametrize(
    ("text", "repaired", "done"),
    [
        ("T1002 ran", "T1560 ran", {"replaced": 1}),
        ("T1562.001 ran", "T1685 ran", {"replaced": 1}),
        ("T1059.001 (JavaScript)", "T1059.001 (PowerShell)", {"renamed": 1}),
        ("TA0005 Defense Evasion", "TA0005 Stealth", {"renamed": 1}),
        ("T1190 (Persistence)", "T1190 (Initial Access)", {"corrected": 1}),
        ("T1190 属于持久化战术。", "T1190 属于初始访问战术。", {"corrected": 1}),
        ("T1190 (TA0003)", "T1190 (TA0001)", {"corrected": 1}),
        ("CWE-89 belongs to A01:2021.", "CWE-89 belongs to A03:2021.", {"corrected": 1}),
        ("CWE-89 is a child of CWE-200.", "CWE-89 is a child of CWE-943.", {"corrected": 1}),
        ("CWE-79 is the parent of CWE-89.", "CWE-943 is the parent of CWE-89.", {"corrected": 1}),
        ("GDPR Art. 33 (Right to object)", "GDPR Art. 33 (" + BREACH + ")", {"corrected": 1}),
        ("a hole (CWE-99999) in it, and A1:2017", "a hole in it, and [unverified id]", {"dropped": 2}),
        ("见 GDPR 第132条。", "见 （编号未核实）。", {"dropped": 1}),
        ("CWE-89 leads to T1557.", "CWE-89 leads to T1557.", {}),
        ("CWE-20 is wide", "CWE-20 is wide", {}),
        ('{"cwe": [89, 99999, 132]}', '{"cwe": [89, null, 170]}', {"dropped": 1, "replaced": 1}),
    ],
)  # fmt: skip
def test_a_repair_does_what_each_grade_asks_for_and_counts_it(
    real_graph: Graph, text: str, repaired: str, done: dict[str, int]
) -> None:
    mended = citations.mend(text, real_graph)
    assert (mended.text, mended.done) == (repaired, done)


def test_repaired_json_is_json(real_graph: Graph) -> None:
    value = {
        "cweId": 99999,
        "cwes": ["CWE-99999", "132"],
        "name": "x",
        "technique_id": "T1190",
        "tactic": "Persistence",
    }
    mended = citations.repair(json.dumps(value), real_graph)[0]
    assert json.loads(mended) == value | {"cweId": None, "cwes": ["[unverified id]", "170"], "tactic": "Initial Access"}


IDS = "CWE-89;CWE-99999;CWE-132;CWE-310;CWE-943;T1190;T1064;T1562.001;TA0003;A03:2021;A1:2017;OWASP A05;NIST AC-6"
CLAUSES = "GDPR Article 33;HIPAA 164.312(b);GDPR 第132条;等保 8.1.4.4 d)"
NAMES = "SQL注入;SQL injection;Persistence;Stealth;Security of processing;Defense Evasion;战术"
VERBS = " belongs to ; leads to ; is a child of ; 属于 ; and "
MARKS = [
    " (",
    ")",
    "（",
    "）",
    ": ",
    " - ",
    "，",
    ", ",
    ". ",
    "\n",
    '"',
    "|",
    "\t",
    "\u0000",
    "ﬁ",
    "{",
    "}",
    "[",
    "]",
    "\\",
]
PIECES = st.sampled_from([piece for group in (IDS, CLAUSES, NAMES, VERBS) for piece in group.split(";")] + MARKS)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(PIECES | st.text(max_size=5), max_size=14))
def test_mending_twice_changes_nothing_more(real_graph: Graph, parts: list[str]) -> None:
    once = citations.mend("".join(parts), real_graph)
    twice = citations.mend(once.text, real_graph)
    assert (twice.text, twice.done) == (once.text, {})
