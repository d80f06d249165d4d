from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from casemate.errors import KnowledgeError
from casemate.knowledge.build import build
from casemate.knowledge.feeds import attack_lookup, cwe_xml
from casemate.knowledge.feeds.streams import json_array, xml_records
from casemate.knowledge.node import Alias, Edge, EdgeKind, Kind, Node, State
from fakes.small_sources import Small

BOMB = """<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>
<Weakness_Catalog Name="CWE" Version="9.1"><Weaknesses>
<Weakness ID="1" Name="&c;"><Description>&c;</Description></Weakness></Weaknesses></Weakness_Catalog>"""


def nodes(small: Small) -> dict[str, Node]:
    records = (*cwe_xml.read(small.cwe), *attack_lookup.read(small.attack))
    return {record.id: record for record in records if isinstance(record, Node)}


def edges(small: Small) -> set[tuple[str, str, str]]:
    records = (*cwe_xml.read(small.cwe), *attack_lookup.read(small.attack))
    return {(record.start, record.relation, record.end) for record in records if isinstance(record, Edge)}


def test_a_weakness_carries_its_text_usage_and_the_most_telling_advice(small: Small) -> None:
    node = nodes(small)["CWE-89"]
    assert node.name == "Careless Assembly of a Query ('SQL Injection')"
    assert node.text == "A query is put together from words of strangers. It then does what they say."
    assert (node.kind, node.usage, node.abstraction, node.version) == (Kind.WEAKNESS, "Allowed", "Base", "9.1")
    assert node.advice == "Bind the values. Never paste them."


def test_a_weakness_is_known_by_its_quoted_name_and_its_alternate_terms(small: Small) -> None:
    aliases = {(r.term, r.id) for r in cwe_xml.read(small.cwe) if isinstance(r, Alias)}
    assert {("SQL Injection", "CWE-89"), ("Query Poisoning", "CWE-89")} <= aliases


def test_an_observed_example_is_evidence_with_its_cve(small: Small) -> None:
    found = [r for r in cwe_xml.read(small.cwe) if isinstance(r, Edge) and r.relation == "observed-in"]
    assert [(e.start, e.end, e.kind, e.support) for e in found] == [
        ("CWE-89", "CVE-2021-1111", EdgeKind.EVIDENCE, ("CVE-2021-1111",))
    ]
    assert nodes(small)["CVE-2021-1111"].text == "A shop let strangers ask."


def test_deprecated_entries_are_kept_and_name_their_heir(small: Small) -> None:
    assert nodes(small)["CWE-132"].state is State.DEPRECATED
    assert ("CWE-132", "replaced-by", "CWE-89") in edges(small)


def test_techniques_come_with_tactics_parents_mitigations_and_heirs(small: Small) -> None:
    assert {
        ("T1190", "achieves", "TA0001"),
        ("T1059.007", "child-of", "T1059"),
        ("M1013", "mitigates", "T1190"),
        ("T1064", "replaced-by", "T1059"),
    } <= edges(small)
    assert nodes(small)["T1064"].state is State.REVOKED


def test_links_and_citations_are_taken_out_of_a_techniques_text(small: Small) -> None:
    assert nodes(small)["T1190"].text == "Strangers use a hole in a server. It is open to all."


def test_an_old_mitigation_does_not_hide_the_technique_whose_id_it_bears(small: Small) -> None:
    assert nodes(small)["T1059"].kind is Kind.TECHNIQUE


def test_a_document_type_is_refused_before_any_entity_is_expanded(small: Small) -> None:
    small.cwe.write_text(BOMB)
    with pytest.raises(KnowledgeError, match="declares a document type"):
        list(cwe_xml.read(small.cwe))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1"])
def test_a_document_type_is_refused_in_every_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "bomb.xml"
    declared = "utf-8" if encoding.startswith("utf-8") else encoding
    path.write_bytes(BOMB.replace('"1.0"', f'"1.0" encoding="{declared}"', 1).encode(encoding))
    with pytest.raises(KnowledgeError, match="document type"):
        list(xml_records(path, {"Weakness"}))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def noise(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 8)


def gone(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("damage", [cut, empty, noise, gone])
@pytest.mark.parametrize("name", ["cwe.xml", "attack-patterns.json", "mitigations.json", "relationships.json"])
def test_a_damaged_source_is_refused_by_name_and_the_old_graph_stays(
    small: Small, tmp_path: Path, name: str, damage: Callable[[Path], None]
) -> None:
    graph = tmp_path / "graph.sqlite"
    build(small.sources, graph)
    before = graph.read_bytes()
    damage(small.cwe.with_name(name))
    with pytest.raises(KnowledgeError) as caught:
        build(small.sources, graph, force=True)
    assert name in caught.value.where
    assert graph.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["graph.sqlite"]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("cwe.xml", 'Name="CWE"', 'Name="CAPEC"'),
        ("cwe.xml", "Weakness_Catalog", "rss"),
        ("attack-patterns.json", "attack-pattern", "malware"),
        ("attack-patterns.json", "enterprise-attack-9.2", "mobile-attack-9.2"),
        ("attack-patterns.json", "enterprise-attack-9.2", "enterprise-attack-9.3"),
        ("attack-patterns.json", '"initial-access"', '"initial-excess"'),
        ("mitigations.json", '"mitigations"', '"cures"'),
    ],
)
def test_a_foreign_source_is_refused(small: Small, tmp_path: Path, name: str, old: str, new: str) -> None:
    path = small.cwe.with_name(name)
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(KnowledgeError):
        build(small.sources, tmp_path / "graph.sqlite")


def test_a_damaged_object_is_named_by_the_line_where_it_begins(small: Small) -> None:
    path = small.attack.with_name("relationships.json")
    path.write_text(path.read_text().replace('"relationship_type": "revoked-by"', '"relationship_type": revoked-by'))
    with pytest.raises(KnowledgeError) as caught:
        list(json_array(path, "relationships"))
    assert caught.value.where == f"{path}:8"


@pytest.mark.parametrize("key", ["name", "external_id", "stix_id", "revoked"])
def test_an_object_that_lacks_a_field_is_named(small: Small, key: str) -> None:
    content = json.loads(small.attack.read_text())
    del content["attack_patterns"][2][key]
    small.attack.write_text(json.dumps(content))
    with pytest.raises(KnowledgeError, match=f"{'attack-pattern--3' if key == 'external_id' else 'T1059.007'} lacks"):
        list(attack_lookup.read(small.attack))


def test_an_entry_without_a_name_is_named_by_its_number(small: Small) -> None:
    small.cwe.write_text(small.cwe.read_text().replace('ID="20" Name="Improper Input Validation"', 'ID="20" Name=""'))
    with pytest.raises(KnowledgeError, match="Weakness 20 lacks"):
        list(cwe_xml.read(small.cwe))


@pytest.mark.parametrize("gap", ["", "\n" * 70_000, " " * 200_000])
def test_objects_are_found_wherever_the_chunks_of_a_file_end(tmp_path: Path, gap: str) -> None:
    path = tmp_path / "long.json"
    rows = [{"n": n, "text": "é" * n} for n in (1, 70_000, 3, 140_000, 5)]
    path.write_text('{"rows": [' + f",{gap}".join(json.dumps(row, ensure_ascii=False) for row in rows) + "]}")
    assert list(json_array(path, "rows")) == rows


def test_sources_of_two_versions_are_not_mixed(small: Small) -> None:
    other = small.attack.with_name("mitigations.json")
    other.write_text(other.read_text().replace("9.2", "9.3"))
    with pytest.raises(KnowledgeError, match=r"different versions: 9\.2, 9\.3"):
        list(attack_lookup.read(small.attack))
