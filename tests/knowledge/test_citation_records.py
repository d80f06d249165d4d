"""A record's fields speak of what the record is about, not of what its description mentions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from casemate.cli.checking import check
from casemate.knowledge import citations
from casemate.knowledge.graph import Graph


def wrong(text: str, graph: Graph) -> list[tuple[str, str]]:
    return [(verdict.mention.id, verdict.grade) for verdict in citations.examine(text, graph) if verdict.failed]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"technique": "T1021.001", "tactic": "lateral-movement", "text": "They use an account (T1078)."}),
        json.dumps({"technique_id": "T1486", "tactic": "Impact", "note": "came after mail, T1566.001, and T1059.001"}),
        "| Technique | Tactic | Note |\n|---|---|---|\n| T1486 | Impact | preceded by T1566.001 and T1059.001 |",
        "编号,战术,说明\nT1486,影响,此前先有钓鱼 T1566.001",
    ],
)
def test_what_a_description_mentions_is_not_put_under_the_record_s_tactic(real_graph: Graph, text: str) -> None:
    assert wrong(text, real_graph) == []


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        (json.dumps({"technique": "T1021.001", "tactic": "impact"}), "T1021.001"),
        (json.dumps({"technique": "ATT&CK: T1110", "tactic": "impact"}), "T1110"),
        ("| Technique | Tactic |\n|---|---|\n| T1486 | Discovery |", "T1486"),
        ("编号,战术,说明\nT1486,侦察,加密了文件", "T1486"),
    ],
)
def test_the_record_s_own_technique_is(real_graph: Graph, text: str, id_: str) -> None:
    assert wrong(text, real_graph) == [(id_, "H7")]


def test_hidden_folders_are_material_and_a_repository_s_own_is_not(real_graph: Graph, tmp_path: Path) -> None:
    tree, text = tmp_path / "tree", tmp_path / "report.md"
    for name in (".github/workflows/ci.yml", ".git/config"):
        (tree / name).parent.mkdir(parents=True)
        (tree / name).write_text(f"run: sh {name}\n")
    text.write_text("The code reads `run: sh .github/workflows/ci.yml`. The code reads `run: sh .git/config`.")
    grades = [verdict.grade for verdict in check(text, real_graph, against=tree).verdicts]
    assert grades == ["H0", "E1"]
