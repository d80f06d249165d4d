"""Wordings of many writers: each kind of fault told in many ways, and as many ways to say what is right.

`wordings.tsv` has a sentence, table or object a row, all of our own invention: its worst grade, or `right`, and whether
it is read with the material below; `\\n` and `\\t` in it are line breaks and tabs.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from casemate.knowledge import citations
from casemate.knowledge.gate.evidence import Material
from casemate.knowledge.graph import Graph

MATERIAL = Material(
    {
        "app.py": (
            'import os\n\ndef find(name):\n    q = "SELECT * FROM t WHERE n=\'" + name\n'
            '    cursor.execute(q)\n    return os.system("ls " + name)\n'
        ),
        "auth.log": "Mar 1 sshd: Failed password for root\nMar 1 sshd: Accepted password for bob\n",
    }
)
ESCAPES = {"n": "\n", "t": "\t", "\\": "\\"}
LINES = Path(__file__).with_name("wordings.tsv").read_text(encoding="utf-8").splitlines()[1:]
ROWS = [line.split("\t") for line in LINES]


def wrong(text: str, graph: Graph, *, material: Material | None) -> set[str]:
    """The grades of what is wrong in a text."""
    plain = re.sub(r"\\(.)", lambda escape: ESCAPES[escape[1]], text)
    return {verdict.grade for verdict in citations.examine(plain, graph, material=material) if verdict.failed}


@pytest.mark.parametrize(("grade", "text"), [(grade, text) for grade, read, text in ROWS if not read])
def test_what_a_text_cites_has_its_grade_however_it_is_said(real_graph: Graph, grade: str, text: str) -> None:
    assert wrong(text, real_graph, material=None) == ({grade} - {"right"})


@pytest.mark.parametrize(("grade", "text"), [(grade, text) for grade, read, text in ROWS if read])
def test_what_a_text_quotes_is_checked_against_the_very_line_beside_it(
    real_graph: Graph, grade: str, text: str
) -> None:
    assert wrong(text, real_graph, material=MATERIAL) == ({grade} - {"right"})


@pytest.mark.parametrize(
    ("id_", "grade"),
    [
        ("HIPAA 164.304", "unchecked"), ("HIPAA 164.305(a)", "H1"), ("HIPAA 164.414", "unchecked"),
        ("HIPAA 164.600", "H1"), ("technique T1478", "unchecked"), ("technique T1479", "H1"),
        ("technique T1636.004", "unchecked"), ("tactic TA0034", "unchecked"), ("tactic TA0099", "H1"),
        ("mitigation M1002", "unchecked"), ("mitigation M1061", "H1"), ("CAPEC-1000", "unchecked"),
        ("CAPEC-4000", "H1"), ("A3:2003", "unchecked"), ("A3:2099 of OWASP", "unchecked"),
    ],
)  # fmt: skip
def test_only_ids_that_a_source_lists_elsewhere_are_left_unchecked(real_graph: Graph, id_: str, grade: str) -> None:
    assert [verdict.grade for verdict in citations.examine(id_, real_graph)] == [grade]
