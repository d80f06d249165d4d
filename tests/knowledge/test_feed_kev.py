from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from casemate.errors import KnowledgeError
from casemate.knowledge.facts import records
from casemate.knowledge.feeds import importers, kev
from casemate.knowledge.node import Edge, EdgeKind, Kind, Node
from conftest import Optional

SHARED = Path(__file__).parents[3] / "shared" / "data" / "evidence" / "kev-2025.08.25.csv"
COLUMNS = ("cveID", "product", "vulnerabilityName", "dateAdded", "shortDescription", "cwes")
ENTRIES: list[dict[str, Any]] = [
    {
        "cveID": "CVE-2031-0001", "product": "Gate", "vulnerabilityName": "Acme Gate Left Open",
        "dateAdded": "2031-02-03", "shortDescription": 'It says "in", \nand means it.', "cwes": ["CWE-89", "CWE-20"],
    },
    {
        "cveID": "CVE-2031-00002", "product": "Wall", "vulnerabilityName": "Acme Wall Löchrig",
        "dateAdded": "2031-02-01", "shortDescription": "It is thin.", "cwes": [],
    },
]  # fmt: skip


def catalogue(entries: list[dict[str, Any]], **head: Any) -> str:
    head = {"title": "A Catalogue", "catalogVersion": "2031.02.03", "count": len(entries)} | head
    return json.dumps({**{key: value for key, value in head.items() if value}, "vulnerabilities": entries}, indent=1)


def table(entries: list[dict[str, Any]]) -> str:
    file = io.StringIO(newline="")
    rows = csv.DictWriter(file, COLUMNS)
    rows.writeheader()
    rows.writerows({**entry, "cwes": ", ".join(entry["cwes"])} for entry in entries)
    return file.getvalue()


FORMS: dict[str, bytes] = {
    "catalogue.json": catalogue(ENTRIES).encode(),
    "undated.json": catalogue(ENTRIES, catalogVersion=None).encode(),
    "catalogue.json.gz": gzip.compress(catalogue(ENTRIES).encode()),
    "catalogue.csv": table(ENTRIES).encode(),
    "marked.csv": b"\xef\xbb\xbf" + table(ENTRIES).encode(),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_vulnerabilities_and_what_they_are_evidence_of(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(FORMS[name])
    assert importers.recognise(path).importer == "kev"
    source = ("CISA KEV", "2031-02-03")
    first, second = "CVE-2031-0001", "CVE-2031-00002"
    assert list(kev.read(path)) == [
        Node(first, Kind.VULNERABILITY, "Acme Gate Left Open", *source),
        Edge("CWE-89", "observed-in", first, EdgeKind.EVIDENCE, *source, support=(first,)),
        Edge("CWE-20", "observed-in", first, EdgeKind.EVIDENCE, *source, support=(first,)),
        Node(second, Kind.VULNERABILITY, "Acme Wall Löchrig", *source),
    ]


def test_what_is_no_weakness_is_no_evidence(tmp_path: Path) -> None:
    path = tmp_path / "kev.json"
    path.write_text(catalogue([ENTRIES[0] | {"cwes": ["NVD-CWE-noinfo", " CWE-89 ", "CWE-89"]}]))
    assert [edge.start for edge in kev.read(path) if isinstance(edge, Edge)] == ["CWE-89"]


def with_entry(**change: Any) -> bytes:
    return catalogue([ENTRIES[0], {key: val for key, val in (ENTRIES[1] | change).items() if val is not None}]).encode()


DAMAGES: dict[str, tuple[str, bytes, str]] = {
    "cut JSON": ("kev.json", FORMS["catalogue.json"][:-40], "kev.json:"),
    "cut table": ("kev.csv", FORMS["catalogue.csv"].rpartition(b",")[0], "kev.csv:4"),
    "cut quote": ("kev.csv", FORMS["catalogue.csv"].partition(b"and means")[0], "kev.csv:2"),
    "cut package": ("kev.json.gz", FORMS["catalogue.json.gz"][:-9], "kev.json.gz"),
    "not UTF-8": ("kev.json", FORMS["catalogue.json"].replace(b"Acme Gate", b"Acme \xff"), "kev.json:9"),
    "nothing in it": ("kev.json", catalogue([]).encode(), "kev.json"),
    "only a head line": ("kev.csv", ",".join(COLUMNS).encode(), "kev.csv"),
    "no list": ("kev.json", catalogue([]).replace("[]", '"none"').encode(), "kev.json"),
    "entries of text": ("kev.json", catalogue(["CVE-2031-0001"]).encode(), "vulnerabilities 1"),  # type: ignore[list-item] # it is damage
    "no id": ("kev.json", with_entry(cveID=None), "vulnerabilities 2"),
    "a strange id": ("kev.json", with_entry(cveID="CVE-31-2"), "CVE-31-2"),
    "no name": ("kev.json", with_entry(vulnerabilityName=""), "CVE-2031-00002"),
    "a number for a name": ("kev.json", with_entry(vulnerabilityName=7), "CVE-2031-00002"),
    "half a character": ("kev.json", with_entry(vulnerabilityName="\ud800 half"), "kev.json:1"),
    "a strange date": ("kev.json", with_entry(dateAdded="yesterday"), "CVE-2031-00002"),
    "no weaknesses": ("kev.json", with_entry(cwes=None), "CVE-2031-00002"),
    "weaknesses of numbers": ("kev.json", with_entry(cwes=[89]), "CVE-2031-00002"),
    "a table without weaknesses": ("kev.csv", table(ENTRIES).replace("cwes", "cves").encode(), "kev.csv:3"),
    "nested without end": ("kev.json", b'{"catalogVersion": ' + b"[" * 100_000, "kev.json:1"),
}


@pytest.mark.parametrize(("name", "content", "where"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_catalogue_is_refused_by_line_or_vulnerability(
    name: str, content: bytes, where: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(KnowledgeError) as caught:
        list(kev.read(path))
    assert where in caught.value.where


def test_what_is_absent_or_a_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.json", tmp_path):
        assert not kev.recognises(path)
        with pytest.raises(KnowledgeError, match="cannot be read"):
            list(kev.read(path))


@pytest.mark.parametrize("content", ["", "{}", "a,b\n1,2\n", '{"vulnerabilities": []}', "\0" * 99, "<html></html>"])
def test_another_file_is_not_claimed(content: str, tmp_path: Path) -> None:
    (tmp_path / "other").write_text(content)
    assert not kev.recognises(tmp_path / "other")


def test_a_package_of_endless_zeros_is_refused_before_it_fills_memory(tmp_path: Path) -> None:
    path = tmp_path / "kev.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.writelines(b" " * (1 << 20) for _ in range(65))
    with pytest.raises(KnowledgeError, match="larger than 64 MiB"):
        list(kev.read(path))


def test_the_official_table_gives_the_records_that_ship(optional: Optional) -> None:
    optional("KEV's own table is not beside this checkout", SHARED.is_file())
    shipped = {record for record in records.read() if isinstance(record, Node | Edge) and record.source == "CISA KEV"}
    assert set(kev.read(SHARED)) == shipped
