from __future__ import annotations

import gzip
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from casemate.errors import KnowledgeError
from casemate.knowledge.feeds import cwe_xml, importers, packed
from fakes.cwe_list import (
    SMALL,
)


@pytest.fixture
def plain_list(tmp_path: Path) -> Path:
    """The small XML list, to be broken at will."""
    return Path(shutil.copy(SMALL / "cwe.xml", tmp_path / "plain.xml"))


def zipped(folder: Path, **members: str) -> Path:
    path = folder / "cwec_v9.1.xml.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def test_the_official_zip_and_a_gzipped_list_give_the_same_records(plain_list: Path, tmp_path: Path) -> None:
    content = plain_list.read_text()
    path = zipped(tmp_path, **{"cwec_v9.1.xml": content, "licence.txt": "Be good."})
    packed_list = tmp_path / "cwe.xml.gz"
    packed_list.write_bytes(gzip.compress(content.encode()))
    assert list(cwe_xml.read(path)) == list(cwe_xml.read(packed_list)) == list(cwe_xml.read(plain_list))
    assert [importers.recognise(one).importer for one in (path, packed_list, plain_list)] == ["cwe"] * 3


def patched(path: Path, *, local: int, central: int, value: bytes) -> None:
    """Write `value` into the zip's first local header and its first central one, at these offsets."""
    content = bytearray(path.read_bytes())
    for start, offset in ((content.index(b"PK\x03\x04"), local), (content.index(b"PK\x01\x02"), central)):
        content[start + offset : start + offset + len(value)] = value
    path.write_bytes(content)


def says_that_it_is_huge(path: Path) -> None:
    patched(path, local=22, central=24, value=struct.pack("<L", 0xF0000000))


def is_larger_than_it_says(path: Path) -> None:
    patched(path, local=22, central=24, value=struct.pack("<L", 100))


def is_encrypted(path: Path) -> None:
    patched(path, local=6, central=8, value=struct.pack("<H", 1))


def is_packed_strangely(path: Path) -> None:
    patched(path, local=8, central=10, value=struct.pack("<H", 12))


def is_cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def is_scratched(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[80:120] = bytes(40)
    path.write_bytes(content)


def is_nonsense_behind_its_mark(path: Path) -> None:
    path.write_bytes(b"PK\x03\x04" + bytes(range(256)) * 4)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (says_that_it_is_huge, "unpacks to more"),
        (is_larger_than_it_says, "damaged package"),
        (is_encrypted, "is encrypted"),
        (is_packed_strangely, "packed by a method"),
        (is_cut, "damaged package"),
        (is_scratched, "damaged package"),
        (is_nonsense_behind_its_mark, "damaged package"),
    ],
)
def test_a_zip_that_cannot_be_trusted_is_refused(
    damage: Callable[[Path], None], words: str, plain_list: Path, tmp_path: Path
) -> None:
    path = zipped(tmp_path, **{"cwec.xml": plain_list.read_text()})
    damage(path)
    with pytest.raises(KnowledgeError, match=words) as caught:
        list(cwe_xml.read(path))
    assert str(path) in caught.value.where
    assert importers.recognise(path).importer == "cwe"


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("../cwec.xml",), "leads out"),
        (("/etc/cwec.xml",), "leads out"),
        (("..\\cwec.xml",), "leads out"),
        (("C:\\cwec.xml",), "leads out"),
        (("cwec.xml", "../other.txt"), "leads out"),
        (("cwec.xml", "again/cwec.xml"), "holds 2 .xml files"),
        (("cwec.txt",), "holds no .xml files"),
        (("cwec.xml/",), "holds no .xml files"),
    ],
)
def test_a_zip_with_other_members_than_one_list_is_refused(
    names: tuple[str, ...], words: str, plain_list: Path, tmp_path: Path
) -> None:
    path = zipped(tmp_path, **dict.fromkeys(names, plain_list.read_text()))
    with pytest.raises(KnowledgeError, match=words):
        list(cwe_xml.read(path))


@pytest.mark.parametrize("packing", ["gz", "zip"])
def test_what_unpacks_beyond_the_limit_is_left_at_the_limit(packing: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    if packing == "gz":
        path.write_bytes(gzip.compress(bytes(1 << 20)))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("bomb.xml", bytes(1 << 20))
        patched(path, local=22, central=24, value=struct.pack("<L", 1 << 12))
    with (
        pytest.raises(KnowledgeError, match=r"unpacks to more|damaged package"),
        packed.opened(path, suffix=".xml", most_bytes=1 << 16) as file,
    ):
        file.read()
