from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from casemate.errors import KnowledgeError
from casemate.knowledge.feeds import cve5, importers
from casemate.knowledge.node import Edge, EdgeKind, Kind, Node, Record, State

VERSION = "2031-05-06"


def record(number: int, **change: Any) -> dict[str, Any]:
    cna: dict[str, Any] = {
        "title": f"Gate {number} left open",
        "descriptions": [{"lang": "de", "value": "Offen."}, {"lang": "en-US", "value": "Anybody\n may come in."}],
        "problemTypes": [{"descriptions": [{"lang": "en", "cweId": "CWE-20", "description": "CWE-20 Input"}]}],
    }
    adp = {"problemTypes": [{"descriptions": [{"lang": "en", "cweId": "CWE-89"}, {"lang": "en", "cweId": "CWE-20"}]}]}
    return {
        "dataType": "CVE_RECORD",
        "dataVersion": "5.1",
        "cveMetadata": {"cveId": f"CVE-2031-{number:04}", "state": "PUBLISHED", "dateUpdated": f"{VERSION}T07:08:09Z"},
        "containers": {"cna": cna, "adp": [adp]},
    } | change


def rejected(number: int) -> dict[str, Any]:
    metadata = {"cveId": f"CVE-2031-{number:04}", "state": "REJECTED", "dateUpdated": "2031-01-01T00:00:00"}
    cna = {"rejectedReasons": [{"lang": "en", "value": "Nobody came in."}], "problemTypes": [{"descriptions": [{}]}]}
    return record(number, cveMetadata=metadata, containers={"cna": cna})


def expected(number: int) -> list[Record]:
    id_, source = f"CVE-2031-{number:04}", ("CVE", VERSION)
    return [
        Node(id_, Kind.VULNERABILITY, f"Gate {number} left open", *source, text="Anybody may come in."),
        Edge("CWE-20", "observed-in", id_, EdgeKind.EVIDENCE, *source, support=(id_,)),
        Edge("CWE-89", "observed-in", id_, EdgeKind.EVIDENCE, *source, support=(id_,)),
    ]


def lines(*values: dict[str, Any]) -> bytes:
    return b"\n".join(json.dumps(value).encode() for value in values) + b"\n\n"


def tree(folder: Path) -> Path:
    for number, value in ((1, record(1)), (2, rejected(2)), (3, record(3))):
        path = folder / "tree" / "2031" / f"{number}xxx" / f"CVE-2031-{number:04}.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(value, indent=2))
    (folder / "tree" / "delta.json").write_text('{"new": []}')
    (folder / "tree" / "README.md").write_text("A list.")
    return folder / "tree"


def zipped(folder: Path, *, method: int = zipfile.ZIP_DEFLATED) -> Path:
    path = folder / "list.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        for file in sorted(tree(folder).rglob("*"), reverse=True):
            archive.write(file, file.relative_to(folder))
    return path


def written(name: str, content: bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return write


def two_lists(folder: Path) -> Path:
    (folder / "lists").mkdir()
    (folder / "lists" / "a.jsonl").write_bytes(lines(record(1), rejected(2)))
    (folder / "lists" / "b.ndjson.gz").write_bytes(gzip.compress(lines(record(3))))
    return folder / "lists"


EVERY = lines(record(1), rejected(2), record(3))
FORMS: dict[str, Callable[[Path], Path]] = {
    "a tree of files": tree,
    "a zip of it": zipped,
    "lines": written("list.jsonl", EVERY),
    "packed lines": written("list.jsonl.gz", gzip.compress(EVERY)),
    "several lists": two_lists,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_gives_the_same_records(form: Callable[[Path], Path], tmp_path: Path) -> None:
    path = form(tmp_path)
    assert importers.recognise(path).importer == "cve"
    gone = Node("CVE-2031-0002", Kind.VULNERABILITY, "CVE-2031-0002", "CVE", VERSION,
                text="Nobody came in.", state=State.REVOKED)  # fmt: skip
    assert list(cve5.read(path)) == [*expected(1), gone, *expected(3)]
    assert list(cve5.read(path)) == list(cve5.read(path))


@pytest.mark.parametrize("name", ["CVE-2031-0001.json", "downloaded", "CVE-2031-0001.json.gz"])
def test_one_record_is_a_source_of_its_own(name: str, tmp_path: Path) -> None:
    content = json.dumps(record(1)).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert importers.recognise(tmp_path / name).importer == "cve"
    assert list(cve5.read(tmp_path / name)) == expected(1)


def test_a_weakness_that_stands_only_in_the_words_counts_and_other_words_do_not(tmp_path: Path) -> None:
    said = [{"lang": "en", "description": text} for text in ("CWE-79: Script", "n/a", "like CWE-20", "CWE-0")]
    containers = {"cna": {"descriptions": [], "problemTypes": [{"descriptions": said}]}}
    path = written("one.json", json.dumps(record(1, containers=containers)).encode())(tmp_path)
    node, *edges = cve5.read(path)
    assert isinstance(node, Node)
    assert (node.name, node.text) == ("CVE-2031-0001", "")
    assert [edge.start for edge in edges if isinstance(edge, Edge)] == ["CWE-79"]


def test_links_in_a_tree_are_not_followed(tmp_path: Path) -> None:
    folder, outside = tree(tmp_path), written("outside.jsonl", lines(record(9)))(tmp_path)
    (folder / "CVE-2031-0009.json").symlink_to(outside)
    (folder / "away").symlink_to(tmp_path, target_is_directory=True)
    assert "CVE-2031-0009" not in {node.id for node in cve5.read(folder) if isinstance(node, Node)}


def changed(*path: str, value: Any = None) -> bytes:
    whole = record(2)
    at = whole
    for key in path[:-1]:
        at = at[key]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return lines(record(1), whole)


DAMAGES: dict[str, tuple[bytes, str]] = {
    "cut": (EVERY[:-30], ":3"),
    "not UTF-8": (EVERY.replace(b"Gate 3", b"Gate \xff"), ":3"),
    "an array": (lines(record(1)) + b"[1]\n", ":3"),
    "format 4": (changed("dataVersion", value="4.0"), ":2, CVE-2031-0002"),
    "format 50": (changed("dataVersion", value="50"), ":2, CVE-2031-0002"),
    "no format": (changed("dataVersion"), ":2, CVE-2031-0002"),
    "no type": (changed("dataType"), ":2, CVE-2031-0002"),
    "no metadata": (changed("cveMetadata"), ":2"),
    "no id": (changed("cveMetadata", "cveId"), ":2"),
    "a strange id": (changed("cveMetadata", "cveId", value="CVE-1"), ":2, CVE-1"),
    "a strange state": (changed("cveMetadata", "state", value="DREAMT"), ":2, CVE-2031-0002"),
    "no containers": (changed("containers"), ":2, CVE-2031-0002"),
    "no container": (changed("containers", "cna"), ":2, CVE-2031-0002"),
    "others' container is none": (changed("containers", "adp", value="CISA"), ":2, CVE-2031-0002"),
    "a title of numbers": (changed("containers", "cna", "title", value=[1]), ":2, CVE-2031-0002"),
    "descriptions of text": (changed("containers", "cna", "descriptions", value=["open"]), "descriptions 1"),
    "problems of text": (changed("containers", "cna", "problemTypes", value="CWE-1"), ":2, CVE-2031-0002"),
    "half a character": (changed("containers", "cna", "title", value="\udc00"), ":2"),
    "nested without end": (lines(record(1)) + b"[" * 100_000, ":3"),
}


@pytest.mark.parametrize(("content", "where"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_record_is_refused_by_line_and_id(content: bytes, where: str, tmp_path: Path) -> None:
    path = written("list.jsonl", content)(tmp_path)
    with pytest.raises(KnowledgeError) as caught:
        list(cve5.read(path))
    assert caught.value.where.startswith(str(path))
    assert where in caught.value.where


def test_records_without_any_date_are_refused(tmp_path: Path) -> None:
    value = record(1, cveMetadata={"cveId": "CVE-2031-0001", "state": "PUBLISHED"})
    with pytest.raises(KnowledgeError, match="with a date"):
        list(cve5.read(written("list.jsonl", lines(value))(tmp_path)))


def test_a_damaged_file_in_a_tree_is_named(tmp_path: Path) -> None:
    damaged = tree(tmp_path) / "2031" / "3xxx" / "CVE-2031-0003.json"
    damaged.write_text(damaged.read_text()[:-5])
    with pytest.raises(KnowledgeError, match="not JSON") as caught:
        list(cve5.read(tmp_path / "tree"))
    assert caught.value.where.startswith(str(damaged))


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_damaged_package_is_refused(share: float, tmp_path: Path) -> None:
    whole = zipped(tmp_path).read_bytes()
    for path, content in ((tmp_path / "a.zip", whole), (tmp_path / "a.jsonl.gz", gzip.compress(EVERY))):
        path.write_bytes(content[: int(len(content) * share)])
        with pytest.raises(KnowledgeError):
            list(cve5.read(path))


def test_a_damaged_member_of_a_zip_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path, method=zipfile.ZIP_STORED)
    path.write_bytes(path.read_bytes().replace(b"Gate 3 left open", b"Gate 3 left shut"))
    with pytest.raises(KnowledgeError, match="packed, and damaged"):
        list(cve5.read(path))


def test_an_encrypted_or_unusual_zip_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path, method=zipfile.ZIP_BZIP2)
    with pytest.raises(KnowledgeError, match="in a way that we do not read"):
        list(cve5.read(path))


def test_a_name_that_leads_out_of_a_zip_leads_nowhere(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("../../CVE-2031-0001.json", json.dumps(record(1)))
    assert list(cve5.read(tmp_path / "a.zip")) == expected(1)
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_a_record_without_end_is_refused_before_it_fills_memory(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b'{"dataType": "CVE_RECORD", "x": "')
        file.writelines(b"x" * (1 << 20) for _ in range(9))
    with pytest.raises(KnowledgeError, match="larger than any CVE record"):
        list(cve5.read(path))


def test_a_folder_or_zip_without_records_is_not_claimed_and_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("cwec.xml", "<x/>")
    for path in (tmp_path / "empty", tmp_path / "a.zip", tmp_path / "absent"):
        assert not cve5.recognises(path)
        with pytest.raises(KnowledgeError):
            list(cve5.read(path))
