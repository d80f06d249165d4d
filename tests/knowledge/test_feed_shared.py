from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from casemate.knowledge.facts import records as facts
from casemate.knowledge.feeds import attack_lookup, attack_stix, capec_stix, cwe_json, importers
from casemate.knowledge.node import Edge, Kind, Node, Record, State
from conftest import Optional

SHARED = Path(__file__).parents[3] / "shared" / "data" / "graph"
CWE = [f"cwe-4.19.1.{name}.jsonl.gz" for name in ("weaknesses", "categories", "views")]
ATTACK = [f"attack-enterprise-18.1.{name}.jsonl.gz" for name in ("objects", "relationships")]
CAPEC = ["capec-3.9.attack-patterns.jsonl.gz"]

Brought = Callable[[list[str]], Path]


@pytest.fixture
def brought(tmp_path: Path, optional: Optional) -> Brought:
    """A folder with copies of official files, which lie beside the checkout where somebody has put them."""

    def folder(names: list[str]) -> Path:
        optional(
            "the official catalogues are not beside this checkout", all((SHARED / name).is_file() for name in names)
        )
        for name in names:
            shutil.copy(SHARED / name, tmp_path)
        return tmp_path

    return folder


def nodes(records: Iterable[Record]) -> list[Node]:
    return [record for record in records if isinstance(record, Node)]


def edges(records: Iterable[Record], *relations: str) -> set[tuple[str, str, str]]:
    found = [record for record in records if isinstance(record, Edge)]
    return {(edge.start, edge.relation, edge.end) for edge in found if not relations or edge.relation in relations}


def states(records: Iterable[Record], kind: Kind) -> list[State]:
    return [node.state for node in nodes(records) if node.kind is kind]


def told(records: Iterable[Record]) -> set[tuple[str, str, str, str]]:
    return {(node.id, node.name.strip(), node.state, node.version) for node in nodes(records)}


def tabulated(source: str) -> list[Record]:
    return [record for record in facts.read() if isinstance(record, Node | Edge) and record.source == source]


def test_the_official_list_of_weaknesses_says_what_the_table_of_facts_says(brought: Brought) -> None:
    folder = brought(CWE)
    assert importers.recognise(folder).importer == "cwe-json"
    found, table = list(cwe_json.read(folder)), tabulated("CWE")
    assert states(found, Kind.WEAKNESS).count(State.LIVE) == 944
    entries = [node for node in nodes(found) if node.kind is not Kind.VULNERABILITY]
    assert told(entries) == told(table)
    assert {(node.id, node.kind, node.abstraction, node.usage) for node in entries} == {
        (node.id, node.kind, node.abstraction, node.usage) for node in nodes(table)
    }
    research = [edge for edge in found if isinstance(edge, Edge) and edge.note == "view 1000"]
    assert edges(research, "child-of") == edges(table)


def test_the_official_techniques_are_691_live_and_132_revoked_ones(brought: Brought) -> None:
    folder = brought(ATTACK)
    assert importers.recognise(folder).importer == "attack-stix"
    found = list(attack_stix.read(folder))
    counted = states(found, Kind.TECHNIQUE)
    assert (counted.count(State.LIVE), counted.count(State.REVOKED)) == (691, 132)
    assert {node.version for node in nodes(found)} == {"18.1"}


def test_the_official_techniques_are_what_the_look_up_files_say(brought: Brought, artifacts: Path) -> None:
    found = list(attack_stix.read(brought(ATTACK)))
    looked_up = list(attack_lookup.read(artifacts / "attack-18.1-attack-patterns.json"))
    assert told(found) == told(looked_up)
    assert edges(found) == edges(looked_up)


def test_the_official_patterns_say_what_the_table_of_facts_says(brought: Brought) -> None:
    path = brought(CAPEC) / CAPEC[0]
    assert importers.recognise(path).importer == "capec-stix"
    found, table = list(capec_stix.read(path)), tabulated("CAPEC")
    assert states(found, Kind.PATTERN).count(State.LIVE) == 559
    assert told(found) == told(table)
    assert edges(found, "child-of", "carried-out-by") == edges(table)
