"""The citation gate on sentences of somebody who had not seen it: 300 with one planted fault each, 300 without any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from casemate.knowledge import citations
from casemate.knowledge.gate.evidence import Material
from casemate.knowledge.gate.mentions import canonical
from casemate.knowledge.graph import Graph

PLANTED = Path(__file__).parent / "planted"
EITHER_END = ("H6", "H7", "E1", "E2")
"""Grades of a relation or a place: which of its two ends is blamed is a matter of taste."""


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (PLANTED / name).read_text(encoding="utf-8").splitlines()]


def failed(row: dict[str, Any], graph: Graph) -> list[tuple[str, str]]:
    material = Material(row["input"]) if row.get("input") else None
    verdicts = citations.examine(row["text"], graph, material=material)
    return [(verdict.mention.id, verdict.grade) for verdict in verdicts if verdict.failed]


def is_told(row: dict[str, Any], graph: Graph) -> bool:
    """Whether the planted fault is told with its grade, and nothing else."""
    ((id_, grade),) = [(id_, grade) for id_, grade in row["expect"] if grade not in ("H0", "unchecked")]
    found = failed(row, graph)
    return bool(found) and all(is_ == grade and (of == canonical(id_) or grade in EITHER_END) for of, is_ in found)


def test_at_least_99_in_100_planted_faults_are_told_with_their_grade(real_graph: Graph) -> None:
    faults = rows("faults.jsonl")
    missed = [row["text"] for row in faults if not is_told(row, real_graph)]
    assert len(faults) == 300
    assert len(missed) <= 3, missed


def test_a_right_text_raises_no_alarm(real_graph: Graph) -> None:
    right = rows("right.jsonl")
    assert len(right) == 300
    assert [row["text"] for row in right if failed(row, real_graph)] == []
