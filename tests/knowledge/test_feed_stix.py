from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType

import pytest

from casemate.errors import KnowledgeError
from casemate.knowledge.feeds import attack_lookup, attack_stix, capec_stix, importers, stix
from casemate.knowledge.node import Edge, EdgeKind, Kind, Node, Record, State
from fakes.stix_objects import FORMS, SMALL, Form, objects, one, written

CATALOGUES = {
    "attack-stix": (attack_stix, SMALL / "enterprise.json", "enterprise-attack-9.2"),
    "capec-stix": (capec_stix, SMALL / "capec.json", "capec-9.3"),
}


def refused(reader: ModuleType, path: Path) -> KnowledgeError:
    with pytest.raises(KnowledgeError) as caught:
        list(reader.read(path))
    return caught.value


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CATALOGUES)
def test_every_form_gives_equal_records_whatever_the_order(name: str, form: Form, tmp_path: Path) -> None:
    reader, sample, folder = CATALOGUES[name]
    root = tmp_path / folder
    root.mkdir()
    path = form(root, objects(sample))
    assert list(reader.read(path)) == list(reader.read(sample))
    assert list(reader.read(path)) == list(reader.read(path))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CATALOGUES)
def test_every_form_is_recognised_as_its_catalogue_and_as_nothing_else(name: str, form: Form, tmp_path: Path) -> None:
    _, sample, folder = CATALOGUES[name]
    root = tmp_path / folder
    root.mkdir()
    path = form(root, objects(sample))
    assert [known for known, importer in importers.IMPORTERS.items() if importer.recognises(path)] == [name]


def test_no_stix_reader_claims_a_sample_of_another_format() -> None:
    for sample in SMALL.iterdir():
        for name, (reader, own, _) in CATALOGUES.items():
            assert reader.recognises(sample) is (sample == own), (name, sample.name)
    assert not attack_lookup.recognises(SMALL / "enterprise.json")


def test_a_folder_that_holds_both_catalogues_is_recognised_as_neither(tmp_path: Path) -> None:
    for _, sample, _ in CATALOGUES.values():
        shutil.copy(sample, tmp_path)
    assert not attack_stix.recognises(tmp_path)
    assert not capec_stix.recognises(tmp_path)


@pytest.fixture(scope="module")
def attack() -> list[Record]:
    return list(attack_stix.read(SMALL / "enterprise.json"))


@pytest.fixture(scope="module")
def capec() -> list[Record]:
    return list(capec_stix.read(SMALL / "capec.json"))


def nodes(records: list[Record]) -> dict[str, Node]:
    return {record.id: record for record in records if isinstance(record, Node)}


def edges(records: list[Record]) -> set[tuple[str, str, str]]:
    return {(record.start, record.relation, record.end) for record in records if isinstance(record, Edge)}


def test_tactics_techniques_and_mitigations_come_and_nothing_else(attack: list[Record]) -> None:
    kinds = {id_: node.kind for id_, node in nodes(attack).items()}
    assert kinds == {
        "TA0001": Kind.TACTIC,
        "TA0002": Kind.TACTIC,
        "T1000": Kind.TECHNIQUE,
        "T1059": Kind.TECHNIQUE,
        "T1059.007": Kind.TECHNIQUE,
        "T1064": Kind.TECHNIQUE,
        "T1190": Kind.TECHNIQUE,
        "M1013": Kind.MITIGATION,
    }
    assert {(node.source, node.version) for node in nodes(attack).values()} == {("ATT&CK", "9.2")}


def test_every_relation_among_them_comes_and_no_other(attack: list[Record]) -> None:
    assert edges(attack) == {
        ("T1190", "achieves", "TA0001"),
        ("T1059", "achieves", "TA0002"),
        ("T1059.007", "achieves", "TA0002"),
        ("T1059.007", "child-of", "T1059"),
        ("T1064", "replaced-by", "T1059"),
        ("M1013", "mitigates", "T1190"),
    }
    assert {record.kind for record in attack if isinstance(record, Edge)} == {EdgeKind.OFFICIAL}


def test_revoked_and_deprecated_techniques_are_marked(attack: list[Record]) -> None:
    states = {id_: node.state for id_, node in nodes(attack).items() if node.state is not State.LIVE}
    assert states == {"T1064": State.REVOKED, "T1000": State.DEPRECATED}


def test_of_two_versions_of_an_object_the_one_modified_last_counts(attack: list[Record]) -> None:
    assert nodes(attack)["T1059.007"].name == "JavaScript"
    assert ("M1013", "mitigates", "T1059.007") not in edges(attack)


def test_a_tactic_has_our_chinese_name_while_it_is_called_as_we_know_it(attack: list[Record]) -> None:
    assert nodes(attack)["TA0001"].name_zh == "初始访问"
    assert nodes(attack)["TA0002"].name_zh == ""
    assert nodes(attack)["TA0002"].text == "They try to run something."


def test_the_bundle_says_of_techniques_what_the_look_up_files_say(attack: list[Record]) -> None:
    looked_up = list(attack_lookup.read(SMALL / "attack-patterns.json"))
    theirs = {id_: node for id_, node in nodes(looked_up).items() if node.kind is not Kind.TACTIC}
    assert {id_: node for id_, node in nodes(attack).items() if id_ in theirs} == theirs
    assert edges(looked_up) == edges(attack)


def test_a_description_comes_on_one_line_without_links_citations_and_tags() -> None:
    text = "Words\n\n become [a  thing](https://example.org/a).(Citation: Somebody 2020)<xhtml:br/>Now (Citation: cut"
    assert stix.plain(text) == "Words become a thing. Now"


def test_a_pattern_comes_with_its_level_parents_weaknesses_and_techniques(capec: list[Record]) -> None:
    node = nodes(capec)["CAPEC-66"]
    assert (node.kind, node.name, node.version, node.abstraction) == (Kind.PATTERN, "SQL Injection", "9.3", "Standard")
    assert node.text == "Words become commands."
    assert edges(capec) == {
        ("CAPEC-66", "child-of", "CAPEC-248"),
        ("CWE-89", "attacked-by", "CAPEC-66"),
        ("CWE-20", "attacked-by", "CAPEC-66"),
        ("CAPEC-66", "carried-out-by", "T1190"),
    }


def test_a_deprecated_pattern_is_kept_without_its_relations(capec: list[Record]) -> None:
    assert {id_ for id_, node in nodes(capec).items() if node.state is State.DEPRECATED} == {"CAPEC-9"}


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("enterprise-attack-18.1.json", "18.1"),
        ("attack-stix.enterprise-attack-18.1.json", "18.1"),
        ("ATT&CK-v17.0/enterprise-attack.json", "17.0"),
        ("18.0/objects.json", "18.0"),
        ("bundle.json", ""),
        ("stix-2.1.json", ""),
    ],
)
def test_without_a_collection_the_version_is_taken_from_a_name_or_missed(
    name: str, version: str, tmp_path: Path
) -> None:
    content = objects(SMALL / "enterprise.json")
    content.remove(one(content, "x-mitre-collection--1"))
    (tmp_path / name).parent.mkdir(exist_ok=True)
    path = written(tmp_path / name, content)
    if version:
        assert {node.version for node in nodes(list(attack_stix.read(path))).values()} == {version}
    else:
        error = refused(attack_stix, path)
        assert error.what == "does not tell its version"
        assert "enterprise-attack-18.1.json" in error.remedy


def test_an_object_larger_than_a_stretch_of_the_file_is_read_whole(tmp_path: Path) -> None:
    content = objects(SMALL / "enterprise.json")
    contents = [{"object_ref": f"attack-pattern--{n:036}", "object_modified": "2026-01-01"} for n in range(20_000)]
    one(content, "x-mitre-collection--1")["x_mitre_contents"] = contents
    path = written(tmp_path / "bundle.json", content)
    assert list(attack_stix.read(path)) == list(attack_stix.read(SMALL / "enterprise.json"))
