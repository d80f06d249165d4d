from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType

import pytest

from casemate.errors import KnowledgeError
from casemate.knowledge.feeds import attack_stix, capec_stix, importers
from fakes.stix_objects import FORMS, SMALL, Form, Object, as_folder_of_bundles, objects, one, written

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
def test_a_file_that_was_cut_is_refused_by_its_name(name: str, form: Form, tmp_path: Path) -> None:
    reader, sample, folder = CATALOGUES[name]
    root = tmp_path / folder
    root.mkdir()
    path = form(root, objects(sample))
    patterns = (
        file for file in sorted(root.rglob("*")) if "attack-pattern" in file.name or file.name.startswith("obj")
    )
    file = path if path.is_file() else next(file for file in patterns if file.is_file())
    content = file.read_bytes()
    for size in (1, 30, len(content) // 2, len(content) - 3):
        file.write_bytes(content[:size])
        assert str(file) in refused(reader, path).where


def test_a_damaged_object_is_named_by_its_line_and_id(tmp_path: Path) -> None:
    path = tmp_path / "enterprise-attack-9.2.json"
    path.write_text((SMALL / "enterprise.json").read_text().replace('"name": "JavaScript",', '"name": JavaScript,'))
    error = refused(attack_stix, path)
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if '"id": "attack-pattern--3"' in text)
    assert "attack-pattern--3" in error.what
    assert error.where == f"{path}:{line}"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"7",
        b"[]",
        b"{}",
        b"[[]]",
        b'{"type": "bundle"}',
        b'{"type": "bundle", "objects": []}',
        b'{"type": "bundle", "objects": {}}',
        b'{"type": "bundle", "objects": [null]}',
        b'{"type": "bundle", "objects": [{}]}',
        b'{"type": "bundle", "objects": [{"type": 3}]}',
        b'{"type": "bundle", "objects": [{"type": "malware", "id": "malware--1"}]}',
        b'{"type": "bundle", "objects": [{"type": "attack-pattern", "name": "no id"}]}',
        b'{"Weaknesses": [{"ID": "89"}], "ContentVersion": "4.19.1"}',
        b'{"mapping_objects": [{"capability_id": "CVE-2021-1111"}]}',
        b'{"type": "bundle", "objects": ' + b"[" * 200_000,
        b'{"type":' * 200_000,
        '{"type": "bundle", "objects": []}'.encode("utf-16"),
        b'{"type": "bundle", "objects": [{"type": "attack-pattern", "name": "\xff"}]}',
        b"\x1f\x8b\x08" + bytes(50),
        b"PK\x03\x04" + bytes(50),
        b"<stix/>",
    ],
)
@pytest.mark.parametrize("name", CATALOGUES)
def test_what_holds_no_object_of_the_catalogue_is_refused(name: str, content: bytes, tmp_path: Path) -> None:
    reader, _, stem = CATALOGUES[name]
    path = tmp_path / f"{stem}.json"
    path.write_bytes(content)
    assert str(path) in refused(reader, path).where
    assert not reader.recognises(path)


def reference(source: str, id_: str) -> dict[str, str]:
    return {"source_name": source, "external_id": id_}


NAMES: tuple[object, ...] = (..., None, "", " ", 3, ["name"], "\udc00")
REFERENCES: tuple[object, ...] = (
    ..., None, [], {}, "T1190", [3], [{"source_name": "mitre-attack"}], [{"source_name": 3}],
)  # fmt: skip
TECHNIQUES = ("T119", "T1190.1", "TA0001", "M1013", "T1190\n", "T１１９０")
BROKEN_ATTACK: tuple[tuple[str, str, object], ...] = (
    *(("attack-pattern--1", "name", value) for value in NAMES),
    *(("attack-pattern--1", "external_references", value) for value in REFERENCES),
    *(("attack-pattern--1", "external_references", [reference("mitre-attack", value)]) for value in TECHNIQUES),
    ("attack-pattern--1", "description", ["text"]),
    ("attack-pattern--1", "revoked", "yes"),
    ("attack-pattern--1", "x_mitre_deprecated", 1),
    ("attack-pattern--1", "x_mitre_domains", "enterprise-attack"),
    ("attack-pattern--1", "kill_chain_phases", ["execution"]),
    ("attack-pattern--1", "kill_chain_phases", [{"kill_chain_name": "mitre-attack"}]),
    ("attack-pattern--1", "modified", 2026),
    ("attack-pattern--1", "type", ...),
    ("x-mitre-tactic--1", "x_mitre_shortname", ...),
    ("x-mitre-tactic--1", "external_references", [reference("mitre-attack", "T0001")]),
    ("relationship--1", "source_ref", ...),
    ("relationship--1", "target_ref", 3),
    ("relationship--1", "relationship_type", None),
    ("relationship--1", "revoked", "no"),
    ("x-mitre-collection--1", "x_mitre_version", ...),
    ("x-mitre-collection--1", "x_mitre_version", "newest"),
)
BROKEN_CAPEC: tuple[tuple[str, str, object], ...] = (
    *(("attack-pattern--11", "name", value) for value in NAMES),
    *(("attack-pattern--11", "external_references", value) for value in REFERENCES),
    *(
        ("attack-pattern--11", "external_references", [reference("capec", "CAPEC-66"), reference(source, value)])
        for source, value in (
            ("cwe", "CWE-"),
            ("cwe", "89"),
            ("cwe", "CWE-89 "),
            ("cwe", "CAPEC-89"),
            ("ATTACK", "1190"),
        )
    ),
    ("attack-pattern--11", "external_references", [reference("capec", "66")]),
    ("attack-pattern--11", "external_references", [reference("capec", "CAPEC-9999999")]),
    ("attack-pattern--11", "x_capec_version", ...),
    ("attack-pattern--11", "x_capec_version", 9.3),
    ("attack-pattern--11", "x_capec_version", "nine"),
    ("attack-pattern--11", "x_capec_status", ...),
    ("attack-pattern--11", "x_capec_child_of_refs", "attack-pattern--12"),
    ("attack-pattern--11", "x_capec_child_of_refs", [12]),
)
BROKEN = [
    *(("attack-stix", id_, field, value) for id_, field, value in BROKEN_ATTACK),
    *(("capec-stix", id_, field, value) for id_, field, value in BROKEN_CAPEC),
]


@pytest.mark.parametrize(("name", "id_", "field", "value"), BROKEN)
def test_an_object_with_a_missing_or_wrong_field_is_named(
    name: str, id_: str, field: str, value: object, tmp_path: Path
) -> None:
    reader, sample, _ = CATALOGUES[name]
    content = objects(sample)
    item = one(content, id_)
    if value is ...:
        del item[field]
    else:
        item[field] = value
    path = written(tmp_path / "bundle.json", content)
    error = refused(reader, path)
    known = {id_, "T1190", "CAPEC-66", "TA0001", "T0001", *(_ids(value) if field == "external_references" else ())}
    assert error.what.startswith(tuple(known))
    assert error.where == str(path)


def _ids(value: object) -> list[str]:
    if not isinstance(value, list):
        return []
    return [str(item["external_id"]) for item in value if isinstance(item, dict) and "external_id" in item]


def test_a_live_technique_of_an_unknown_tactic_is_named(tmp_path: Path) -> None:
    content = objects(SMALL / "enterprise.json")
    content.remove(one(content, "x-mitre-tactic--1"))
    error = refused(attack_stix, written(tmp_path / "bundle.json", content))
    assert error.what == "T1190 names an unknown tactic 'initial-access'"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"x_mitre_domains": ["mobile-attack"]}, "mobile-attack"),
        ({"x_mitre_domains": ["ics-attack"]}, "ics-attack"),
        ({"x_mitre_domains": [], "kill_chain_phases": "mitre-mobile-attack"}, "mitre-mobile-attack"),
        ({"x_mitre_domains": None, "kill_chain_phases": "mitre-ics-attack"}, "mitre-ics-attack"),
    ],
)
def test_a_technique_of_another_domain_is_refused_by_the_domain(fields: Object, named: str, tmp_path: Path) -> None:
    content = objects(SMALL / "enterprise.json")
    if chain := fields.get("kill_chain_phases"):
        fields = fields | {"kill_chain_phases": [{"kill_chain_name": chain, "phase_name": "initial-access"}]}
    one(content, "attack-pattern--1").update(fields)
    path = written(tmp_path / "bundle.json", content)
    assert refused(attack_stix, path).what == f"T1190 is of {named}; only ATT&CK Enterprise is read"
    assert importers.recognise(path).importer == "attack-stix"


@pytest.mark.parametrize("name", ["Mobile ATT&CK", "ICS ATT&CK"])
def test_a_collection_of_another_domain_is_refused_by_its_name(name: str, tmp_path: Path) -> None:
    content = objects(SMALL / "enterprise.json")
    one(content, "x-mitre-collection--1")["name"] = name
    assert f"is of {name}" in refused(attack_stix, written(tmp_path / "bundle.json", content)).what


def test_collections_of_two_versions_are_not_mixed(tmp_path: Path) -> None:
    content = objects(SMALL / "enterprise.json")
    content.append(one(content, "x-mitre-collection--1") | {"id": "x-mitre-collection--2", "x_mitre_version": "9.3"})
    assert "different versions: 9.2, 9.3" in refused(attack_stix, written(tmp_path / "bundle.json", content)).what


def test_patterns_of_two_versions_are_not_mixed(tmp_path: Path) -> None:
    content = objects(SMALL / "capec.json")
    one(content, "attack-pattern--12")["x_capec_version"] = "9.2"
    assert "different versions: 9.2, 9.3" in refused(capec_stix, written(tmp_path / "bundle.json", content)).what


@pytest.mark.parametrize("name", CATALOGUES)
def test_an_object_that_is_there_twice_with_different_content_is_named(name: str, tmp_path: Path) -> None:
    reader, sample, _ = CATALOGUES[name]
    content = objects(sample)
    twin = next(item for item in content if item["type"] == "attack-pattern")
    content.append(twin | {"name": "Something Else"})
    assert f"{twin['id']} is there twice" in refused(reader, written(tmp_path / "bundle.json", content)).what


def test_the_two_catalogues_refuse_each_other_by_an_object(tmp_path: Path) -> None:
    assert refused(capec_stix, SMALL / "enterprise.json").what == "T1190 lacks 'x_capec_version'"
    path = shutil.copy(SMALL / "capec.json", tmp_path / "enterprise-attack-9.2.json")
    assert "carries no id of an ATT&CK technique" in refused(attack_stix, Path(path)).what


@pytest.mark.parametrize("name", CATALOGUES)
def test_a_link_that_leads_out_of_a_folder_is_refused(name: str, tmp_path: Path) -> None:
    reader, sample, stem = CATALOGUES[name]
    root = tmp_path / stem
    root.mkdir()
    as_folder_of_bundles(root, objects(sample))
    (root / "more.json").symlink_to(sample)
    assert "leads out" in refused(reader, root).what


def test_an_object_without_end_is_given_up_before_memory_fills(tmp_path: Path) -> None:
    path = tmp_path / "enterprise-attack-9.2.json"
    path.write_text('{"type": "bundle", "objects": [{"type": "attack-pattern", "id": "attack-pattern--1", "name": "')
    with path.open("a") as file:
        file.write("x" * (24 << 20))
        file.write('"}]}')
    assert "damaged object, attack-pattern--1" in refused(attack_stix, path).what
