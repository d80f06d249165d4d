from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from casemate.errors import KnowledgeError
from casemate.knowledge.feeds import cwe_json, cwe_xml
from fakes.cwe_list import (
    FORMS,
    SMALL,
    Form,
    as_array,
    as_folder_of_entries,
    bundle,
    entries,
    lines,
)


def refused(path: Path) -> KnowledgeError:
    with pytest.raises(KnowledgeError) as caught:
        list(cwe_json.read(path))
    return caught.value


@pytest.mark.parametrize("encoding", ["nobody-knows-it", "utf-7", "gbk"])
def test_a_list_in_an_encoding_that_is_not_read_is_refused(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "cwe.xml"
    path.write_text(f'<?xml version="1.0" encoding="{encoding}"?><Weakness_Catalog Name="CWE" Version="9.1"/>')
    with pytest.raises(KnowledgeError):
        list(cwe_xml.read(path))


def test_an_entry_larger_than_any_official_one_is_refused_before_memory_fills(plain_list: Path) -> None:
    text = "Nobody looks at what comes in."
    plain_list.write_text(plain_list.read_text().replace(text, text * 300_000))
    with pytest.raises(KnowledgeError, match="larger than any official one"):
        list(cwe_xml.read(plain_list))


@pytest.mark.parametrize(
    ("old", "new"),
    [('CWE_ID="20"', 'CWE_ID="twenty"'), ('CWE_ID="20" ', ""), ('CAPEC_ID="66"', 'CAPEC_ID="CAPEC-66"')],
)
def test_an_xml_entry_that_names_no_number_where_it_should_is_named(old: str, new: str, plain_list: Path) -> None:
    plain_list.write_text(plain_list.read_text().replace(old, new))
    with pytest.raises(KnowledgeError, match="CWE-89 names"):
        list(cwe_xml.read(plain_list))


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_was_cut_is_refused_by_its_name(form: Form, tmp_path: Path) -> None:
    folder = tmp_path / "form"
    folder.mkdir()
    path = form(folder)
    file = path if path.is_file() else next(path.rglob("*89.json"), path / "cwe-9.1.weaknesses.jsonl.gz")
    for size in (1, 30, file.stat().st_size // 2, file.stat().st_size - 3):
        content = file.read_bytes()
        file.write_bytes(content[:size])
        assert str(file) in refused(path).where
        file.write_bytes(content)


def test_a_damaged_line_is_named_by_its_number_and_its_entry(tmp_path: Path) -> None:
    path = as_array(tmp_path).with_suffix(".jsonl")
    path.write_text(lines(entries()).replace('"Status": "Deprecated"', '"Status": Deprecated', 1))
    error = refused(path)
    assert error.where == f"{path}:4"
    assert "132" in error.what


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"   \n",
        b"null",
        b"42",
        b'"CWE"',
        b"[]",
        b"{}",
        b"[1, 2]",
        b'[{"ID": "1"}',
        b'[{"ID": "1"},]',
        b'{"Weaknesses": [], "Categories": [], "ContentVersion": "9.1"}',
        b'{"Weaknesses": {}, "ContentVersion": "9.1"}',
        b'{"Weaknesses": [3], "ContentVersion": "9.1"}',
        b'{"ContentVersion": "9.1",}',
        b'{"ContentVersion" "9.1"}',
        b'{ContentVersion: "9.1"}',
        b'{"ContentVersion": 9.1}',
        b'{"ContentVersion": "new"}',
        b'{"vulnerabilities": [{"cveID": "CVE-2021-1111"}], "catalogVersion": "2025.08.25"}',
        b'{"type": "bundle", "objects": []}',
        b"<Weakness_Catalog Name='CWE' Version='9.1'/>",
        b"id\tname\nCWE-89\tSQL\n",
        b'{"a":' * 200_000,
        b"[" * 200_000,
        b'{"ContentVersion": ' + b"9" * 10_000 + b"}",
        '{"ContentVersion": "9.1"}'.encode("utf-16"),
        b'{"ContentVersion": "\xff\xfe"}',
        bytes(range(256)) * 8,
        b"\x1f\x8b" + bytes(100),
    ],
)
def test_what_is_no_list_of_cwe_entries_is_refused_and_not_recognised(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cwe-9.1.json"
    path.write_bytes(content)
    assert str(path) in refused(path).where


@pytest.mark.parametrize("key", ["ID", "Name", "Status", "Description"])
def test_a_json_entry_that_lacks_a_field_is_named(key: str, tmp_path: Path) -> None:
    content = entries()
    del content[0][key]
    path = tmp_path / "cwe-9.1.json"
    path.write_text(json.dumps(content))
    assert ("object that is no entry" if key == "ID" else "CWE-89 ") in refused(path).what


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ID", 89),
        ("ID", "CWE-89"),
        ("ID", "9" * 5000),
        ("ID", "８９"),
        ("Name", None),
        ("Name", ["SQL Injection"]),
        ("Name", "\ud800"),
        ("Description", {"p": "text"}),
        ("Abstraction", 3),
        ("RelatedWeaknesses", {"CweID": "20"}),
        ("RelatedWeaknesses", [{"Nature": "ChildOf", "ViewID": "1000"}]),
        ("RelatedWeaknesses", [{"Nature": "ChildOf", "CweID": "20; DROP", "ViewID": "1000"}]),
        ("RelatedWeaknesses", ["20"]),
        ("RelatedAttackPatterns", [66]),
        ("RelatedAttackPatterns", "66"),
        ("RelatedAttackPatterns", ["CAPEC-66"]),
        ("MappingNotes", "Allowed"),
        ("MappingNotes", {"Usage": ["Allowed"]}),
        ("AlternateTerms", [{"Description": "no term"}]),
        ("PotentialMitigations", [{"Description": ["Bind."]}]),
        ("ObservedExamples", [{"Reference": 2021}]),
    ],
)
def test_a_json_field_of_a_wrong_type_is_named_with_its_entry(key: str, value: object, tmp_path: Path) -> None:
    content = entries()
    content[0][key] = value
    path = tmp_path / "cwe-9.1.json"
    path.write_text(json.dumps(content))
    assert refused(path).what.startswith("CWE-")


def test_an_entry_that_is_there_twice_counts_once_unless_it_differs(tmp_path: Path) -> None:
    folder = as_folder_of_entries(tmp_path)
    shutil.copy(folder / "W" / "89.json", folder / "W" / "copy-of-89.json")
    assert list(cwe_json.read(folder)) == list(cwe_xml.read(SMALL / "cwe.xml"))
    other = folder / "W" / "89.json"
    other.write_text(other.read_text().replace("Careless", "Careful"))
    assert "CWE-89 is there twice" in refused(folder).what


def test_a_list_without_weaknesses_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cwe-9.1.json"
    path.write_text(json.dumps(bundle()["Categories"]))
    assert refused(path).what == "holds no weakness"


def test_a_link_that_leads_out_of_a_folder_is_refused_and_not_recognised(tmp_path: Path) -> None:
    folder = as_folder_of_entries(tmp_path)
    secret = tmp_path / "secret.json"
    shutil.copy(folder / "W" / "89.json", secret)
    (folder / "W" / "99.json").symlink_to(secret)
    assert "leads out" in refused(folder).what
    assert not cwe_json.recognises(folder)


def test_a_file_that_is_not_there_and_a_folder_without_files_are_refused(tmp_path: Path) -> None:
    assert "cannot be read" in refused(tmp_path / "cwe-9.1.json").what
    assert "holds no weakness" in refused(tmp_path).what
    assert not cwe_json.recognises(tmp_path)
