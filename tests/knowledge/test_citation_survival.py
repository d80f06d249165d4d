"""No text, however strange, breaks the gate, and what it says always points at the right place."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casemate.knowledge import citations
from casemate.knowledge.gate import mentions
from casemate.knowledge.gate.evidence import Material
from casemate.knowledge.graph import Graph

MATERIAL = Material({"src/app.py": "import os\n\nquery = f(name)\ncursor.execute(query)\n"})
IDS = "CWE-89;cwe-079;T1059.001;t1059/001;A03:2021;OWASP A1;NIST AC-2;AC-6(1);D3-CH;CVE-2021-44228;ASVS v5.0.0-1.2.4"
CLAUSES = "GDPR Article 32(1);第三十二条;等保 8.1.4.4 d);HIPAA §164.312(b)"
OTHERS = (
    "sigma;0022869c-49f7-4ff2-ba03-85ac42ddac58;cwe.mitre.org/data/definitions/79.html;SQL注入;Persistence;name;cwe;id"
)
PLACES = "app.py:3;`cursor.execute(query)`;第 3 行;event #3; maps to ; → ; 属于 "
MARKS = ["---", "\\u4e2d", *'（）()|\n\t,"\\{}[]:\u0000\ufeff\u202eﬁⅧ　\u2028\r']
WORDS = st.sampled_from([word for group in (IDS, CLAUSES, OTHERS, PLACES) for word in group.split(";")] + MARKS)
TEXTS = st.lists(WORDS | st.text(max_size=6), max_size=24).map("".join)
QUIET = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@QUIET
@given(text=TEXTS)
def test_no_text_breaks_the_gate_and_every_span_is_in_the_text(real_graph: Graph, text: str) -> None:
    for verdict in citations.examine(text, real_graph, material=MATERIAL):
        assert 0 <= verdict.mention.start < verdict.mention.end <= len(text)
        if verdict.claim:
            assert 0 <= verdict.claim.start < verdict.claim.end <= len(text)


@QUIET
@given(text=TEXTS)
def test_a_text_is_cited_alike_inside_json(real_graph: Graph, text: str) -> None:
    plain = [mention.id for mention in mentions.find(text)]
    for ascii_only in (True, False):
        packed = json.dumps({"message": text, "n": 1}, ensure_ascii=ascii_only)
        found = [verdict.mention for verdict in citations.examine(packed, real_graph)]
        assert len(found) == len(plain)
        assert all(packed[mention.start : mention.end] for mention in found)


@QUIET
@given(text=TEXTS, before=st.text(alphabet="x。\n ", max_size=40))
def test_what_stands_before_moves_a_mention_and_changes_nothing_else(text: str, before: str) -> None:
    gap = before + "\n" * 200  # farther than any word of a catalogue reaches
    moved = [(mention.id, mention.start - len(gap), mention.end - len(gap)) for mention in mentions.find(gap + text)]
    assert moved == [(mention.id, mention.start, mention.end) for mention in mentions.find(text)]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '{"id":"89","a":' * 20_000 + "1" + "}" * 20_000,
        '{"cwe": [' + ",".join(["89"] * 20_000) + "]}",
        "GDPR" + " " * 200_000 + "Art. 32",
        "OWASP " * 30_000,
        "|" * 100_000 + "CWE-89",
        "(" * 100_000 + "CWE-89" + ")" * 100_000,
        "cwe,name" + ",x" * 50_000 + "\nCWE-89,y" + ",x" * 50_000,
        "\0" * 100_000 + "CWE-89",
        '"' * 100_000,
        "AC-2 " * 20_000 + "NIST",
        "§ " * 50_000 + "CFR",
        ("CWE-89" + " the" * 35 + " T1190 ") * 500,
        "等保 " * 30_000,
        "`" * 50_001,
        "a.b/" * 30_000 + ":1",
    ],
    ids=lambda text: text[:12],
)
def test_a_hostile_text_costs_no_more_than_its_length(real_graph: Graph, text: str) -> None:
    citations.examine(text, real_graph, material=MATERIAL)


def test_a_long_list_of_one_line_is_graded_whole(real_graph: Graph) -> None:
    assert len(citations.examine("CWE-89, " * 5_000, real_graph)) == 5_000
