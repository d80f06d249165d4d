from __future__ import annotations

import json
from pathlib import Path

import pytest

from casemate.errors import KnowledgeError
from casemate.knowledge.feeds import cwe_json, cwe_xml, importers
from casemate.knowledge.node import Node
from fakes.cwe_list import (
    FORMS,
    SMALL,
    Form,
    as_bundle,
    as_folder_of_entries,
    as_three_files,
    entries,
    lines,
)


def refused(path: Path) -> KnowledgeError:
    with pytest.raises(KnowledgeError) as caught:
        list(cwe_json.read(path))
    return caught.value


@pytest.mark.parametrize("form", FORMS)
def test_every_json_form_gives_the_records_of_the_xml(form: Form, plain_list: Path, tmp_path: Path) -> None:
    folder = tmp_path / "form"
    folder.mkdir()
    path = form(folder)
    assert list(cwe_json.read(path)) == list(cwe_xml.read(plain_list))
    assert list(cwe_json.read(path)) == list(cwe_json.read(path))


@pytest.mark.parametrize("form", FORMS)
def test_every_json_form_is_recognised_as_the_cwe_list_and_as_nothing_else(form: Form, tmp_path: Path) -> None:
    folder = tmp_path / "form"
    folder.mkdir()
    path = form(folder)
    assert [name for name, importer in importers.IMPORTERS.items() if importer.recognises(path)] == ["cwe-json"]


def test_the_json_list_brings_the_risks_of_2021_as_the_xml_does(plain_list: Path) -> None:
    both = [list(importers.read(importers.recognise(path))) for path in (plain_list, SMALL / "cwe.json")]
    assert both[0] == both[1]
    assert any(isinstance(record, Node) and record.id == "A03:2021" for record in both[1])


def test_one_line_of_the_json_text_is_kept_without_marks_of_lists(tmp_path: Path) -> None:
    advice = {node.id: node.advice for node in cwe_json.read(as_bundle(tmp_path)) if isinstance(node, Node)}
    assert advice["CWE-89"] == "Bind the values. Never paste them."


def test_a_field_that_is_null_counts_as_absent(tmp_path: Path) -> None:
    content = entries()
    for entry in content:
        entry.update({"Diagram": None} if "Members" in entry else {"Members": None})
    path = tmp_path / "cwe-9.1.json"
    path.write_text(json.dumps(content))
    assert list(cwe_json.read(path)) == list(cwe_xml.read(SMALL / "cwe.xml"))


@pytest.mark.parametrize(
    "name", ["entries.json", "cwe.json", "cwe-2026.01.21.json", "cwe9.json", "stix-2.1.json", "page5.1.json"]
)
def test_a_list_that_tells_its_version_nowhere_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(json.dumps(entries()))
    error = refused(path)
    assert error.what == "does not tell its version"
    assert "cwe-4.19.1.json" in error.remedy


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("cwe-4.19.1.json", "4.19.1"),
        ("cwec_v4.19.json", "4.19"),
        ("cwe-json.4.20.json", "4.20"),
        ("v4.20/entries.json", "4.20"),
        ("4.20/cwe-4.21.json", "4.21"),
    ],
)
def test_the_version_is_taken_from_the_nearest_name_that_tells_it(name: str, version: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(entries()))
    assert {record.version for record in cwe_json.read(path) if isinstance(record, Node)} == {version}


def test_what_stands_in_a_file_counts_more_than_its_name(tmp_path: Path) -> None:
    path = as_bundle(tmp_path).rename(tmp_path / "cwe-1.0.json")
    assert {record.version for record in cwe_json.read(path) if isinstance(record, Node)} == {"9.1"}


@pytest.mark.parametrize("names", [("cwe-9.1.a.jsonl", "cwe-9.2.b.jsonl"), ("cwe-9.1-9.2.json",)])
def test_a_list_of_two_versions_is_refused(names: tuple[str, ...], tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).write_text(lines(entries()))
    assert "different versions: 9.1, 9.2" in refused(tmp_path).what


def test_bundles_of_two_versions_are_not_mixed(tmp_path: Path) -> None:
    as_bundle(tmp_path)
    (tmp_path / "other.json").write_text(json.dumps({"ContentVersion": "9.2"}))
    assert "different versions: 9.1, 9.2" in refused(tmp_path).what


def test_hidden_files_of_a_folder_are_left_out(tmp_path: Path) -> None:
    folder = as_folder_of_entries(tmp_path)
    (folder / ".git").mkdir()
    (folder / ".git" / "index.json").write_text("broken")
    assert list(cwe_json.read(folder)) == list(cwe_xml.read(SMALL / "cwe.xml"))


def test_a_folder_that_mixes_the_list_with_something_else_is_not_recognised(tmp_path: Path) -> None:
    folder = as_three_files(tmp_path)
    (folder / "attack.jsonl").write_text(json.dumps({"type": "attack-pattern", "x_mitre_version": "1.0"}) + "\n")
    assert not cwe_json.recognises(folder)
