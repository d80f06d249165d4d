from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from casemate.errors import KnowledgeError
from casemate.knowledge.facts import records
from casemate.knowledge.feeds import ctid, importers
from casemate.knowledge.node import Edge, EdgeKind, Node, Record
from conftest import Optional

SHARED = Path(__file__).parents[3] / "shared" / "data" / "evidence"
Reader = Callable[[Path], Iterator[Record]]

KEV_HEAD = {
    "technology_domain": "enterprise", "attack_version": "30.1", "mapping_framework": "kev",
    "mapping_framework_version": "2/3/2031",
}  # fmt: skip
NIST_HEAD = KEV_HEAD | {"mapping_framework": "nist_800_53", "mapping_framework_version": "rev5"}


def mapped(what: str | None, how: str | None, to: str | None, **more: Any) -> dict[str, Any]:
    return {"capability_id": what, "mapping_type": how, "attack_object_id": to, "status": "complete"} | more


KEV = [
    mapped("CVE-2031-0001", "exploitation_technique", "T1190"),
    mapped("CVE-2031-0001", "primary_impact", "T1059.007"),
    mapped("CVE-2031-0001", "secondary_impact", "T1005"),
    mapped("CVE-2031-0002", "uncategorized", "T1005"),
    mapped(None, None, "T1650", status="non_mappable"),
]
NIST = [
    mapped("AC-2", "mitigates", "T1190"),
    mapped("AC-06(09)", "mitigates", "T1059.007"),
    mapped(None, None, "T1650", status="non_mappable"),
]
TABLE = (
    "\ufeffCVE ID,Primary Impact,Secondary Impact,Exploitation Technique,Uncategorized,Phase\r\n"
    "CVE-2031-0001,T1059.007,T1005; T1190,T1190. T1078.,,Phase 2\r\n"
    "CVE-2031-0002,TT1565,T828,T11190,T1499,Phase 1\r\n"
    "CVE-2031-0003,,,,,Phase 1\r\n"
)


def document(head: dict[str, Any], objects: Any) -> str:
    return json.dumps({"metadata": head, "mapping_objects": objects}, indent=2)


def told(path: Path, read: Reader) -> list[tuple[str, str, str]]:
    return [(edge.start, edge.relation, edge.end) for edge in read(path) if isinstance(edge, Edge)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_vulnerability_has_its_way_in_and_its_effects(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "kev.json"
    path.write_bytes(pack(document(KEV_HEAD, KEV).encode()))
    assert importers.recognise(path).importer == "ctid-kev"
    assert told(path, ctid.read_kev) == [
        ("CVE-2031-0001", "way-in", "T1190"),
        ("CVE-2031-0001", "first-effect", "T1059.007"),
        ("CVE-2031-0001", "second-effect", "T1005"),
    ]
    sources = {(e.kind, e.source, e.version) for e in ctid.read_kev(path) if isinstance(e, Edge)}
    assert sources == {(EdgeKind.OFFICIAL, "CTID mappings of KEV", "2031-02-03")}


def test_a_control_mitigates_techniques_and_bears_its_usual_id(tmp_path: Path) -> None:
    path = tmp_path / "nist.json"
    path.write_text(document(NIST_HEAD, NIST))
    assert importers.recognise(path).importer == "ctid-nist"
    assert told(path, ctid.read_nist) == [
        ("NIST AC-2", "mitigates", "T1190"),
        ("NIST AC-6(9)", "mitigates", "T1059.007"),
    ]
    assert {e.version for e in ctid.read_nist(path) if isinstance(e, Edge)} == {"rev 5, ATT&CK 30.1"}


def test_the_older_table_is_read_and_what_is_mistyped_there_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "cve.csv"
    path.write_text(TABLE, encoding="utf-8", newline="")
    assert importers.recognise(path).importer == "ctid-cve"
    assert told(path, ctid.read_cve) == [
        ("CVE-2031-0001", "way-in", "T1190"),
        ("CVE-2031-0001", "way-in", "T1078"),
        ("CVE-2031-0001", "first-effect", "T1059.007"),
        ("CVE-2031-0001", "second-effect", "T1005"),
        ("CVE-2031-0001", "second-effect", "T1190"),
    ]


def kev_with(**change: Any) -> str:
    return document(KEV_HEAD, [KEV[0], KEV[1] | change])


def nist_with(**change: Any) -> str:
    return document(NIST_HEAD, [NIST[0], NIST[1] | change])


DAMAGES: dict[str, tuple[Reader, str, str]] = {
    "cut": (ctid.read_kev, document(KEV_HEAD, KEV)[:-9], ":"),
    "no metadata": (ctid.read_kev, '{"mapping_objects": []}', ""),
    "no framework": (ctid.read_kev, document({}, KEV), ""),
    "another framework": (ctid.read_kev, document(NIST_HEAD, NIST), ""),
    "another framework still": (ctid.read_nist, document(KEV_HEAD, KEV), ""),
    "mobile": (ctid.read_kev, document(KEV_HEAD | {"technology_domain": "mobile"}, KEV), ""),
    "ICS": (ctid.read_nist, document(NIST_HEAD | {"technology_domain": "ics"}, NIST), ""),
    "no date": (ctid.read_kev, document(KEV_HEAD | {"mapping_framework_version": "soon"}, KEV), ""),
    "no revision": (ctid.read_nist, document(NIST_HEAD | {"mapping_framework_version": "v"}, NIST), ""),
    "no ATT&CK": (ctid.read_nist, document(NIST_HEAD | {"attack_version": None}, NIST), ""),
    "nothing mapped": (ctid.read_kev, document(KEV_HEAD, []), ""),
    "nothing mappable": (ctid.read_nist, document(NIST_HEAD, NIST[2:]), ""),
    "no list": (ctid.read_kev, document(KEV_HEAD, {"a": 1}), ""),
    "a strange way": (ctid.read_kev, kev_with(mapping_type="guess"), "CVE-2031-0001"),
    "a strange vulnerability": (ctid.read_kev, kev_with(capability_id="AC-2"), "AC-2"),
    "a strange technique": (ctid.read_kev, kev_with(attack_object_id="T828"), "CVE-2031-0001"),
    "no technique": (ctid.read_kev, kev_with(attack_object_id=None), "CVE-2031-0001"),
    "another way": (ctid.read_nist, nist_with(mapping_type="detects"), "AC-06(09)"),
    "a strange control": (ctid.read_nist, nist_with(capability_id="Access"), "Access"),
    "no control": (ctid.read_nist, nist_with(capability_id=None), "mapping_objects 2"),
    "a cut table": (ctid.read_cve, TABLE[:-20], ":4"),
    "a strange id": (ctid.read_cve, TABLE.replace("CVE-2031-0002", "2031"), ":3"),
    "another table": (ctid.read_cve, "a,b\n1,2\n", ""),
    "an empty table": (ctid.read_cve, TABLE.partition("\r\n")[0], ""),
}


@pytest.mark.parametrize(("read", "content", "where"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_or_foreign_mapping_is_refused_by_line_or_object(
    read: Reader, content: str, where: str, tmp_path: Path
) -> None:
    path = tmp_path / "mapping"
    path.write_text(content, encoding="utf-8", newline="")
    with pytest.raises(KnowledgeError) as caught:
        list(read(path))
    assert caught.value.where.startswith(str(path))
    assert where in caught.value.where


def test_the_official_mappings_give_the_edges_that_ship(optional: Optional) -> None:
    optional("CTID's own mappings are not beside this checkout", SHARED.is_dir())
    shipped = [record for record in records.read() if isinstance(record, Node | Edge)]
    for name, importer in (("ctid-kev-attack-16.1", "ctid-kev"), ("ctid-nist800-53r5-attack-16.1", "ctid-nist")):
        source = importers.recognise(SHARED / f"{name}.json.gz")
        assert source.importer == importer
        title = importers.IMPORTERS[importer].title
        assert set(importers.read(source)) == {record for record in shipped if record.source == title}


def test_the_official_older_table_is_read_whole(optional: Optional) -> None:
    path = SHARED / "ctid-attack-to-cve.csv"
    optional("CTID's older table is not beside this checkout", path.is_file())
    found = told(path, ctid.read_cve)
    assert importers.recognise(path).importer == "ctid-cve"
    assert (len(found), len({cve for cve, _, _ in found})) == (912, 374)
