"""Sources as they are published: a file, plain, gzipped or in a zip, or a folder. Nothing is unpacked to disk."""

from __future__ import annotations

import gzip
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, BinaryIO

from casemate.errors import KnowledgeError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

REMEDY = "fetch it again: casemate fetch"
MOST_BYTES = 1 << 29
"""What one file may hold, unpacked; the largest official one (ATT&CK Enterprise) is a tenth of it."""
JSON_ENDINGS = (".json", ".jsonl", ".json.gz", ".jsonl.gz")

_Bytes = gzip.GzipFile | IO[bytes]
_HEAD_BYTES = 1 << 16
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_FAILURES = (OSError, zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, ValueError)
"""What the standard library raises on a file that cannot be read, and on bytes that are no package or half of one."""
_LOOKED_INTO = 8
_VERSION = re.compile(r"(?<!stix[-_ ])(?<![A-Z\d])(?<!\d\.)v?(\d{1,2}\.\d{1,2}(?:\.\d{1,2})?)(?!\.?\d)", re.IGNORECASE)
"""A version in a name; no date, and not the version of the format."""


@contextmanager
def opened(path: Path, *, suffix: str = "", most_bytes: int = MOST_BYTES) -> Iterator[BinaryIO]:
    """The bytes of a file: as they lie there, gunzipped, or of the only member of a zip that ends in `suffix`.

    Raises:
        KnowledgeError: the file cannot be read or is damaged, holds more than `most_bytes`, or the zip is encrypted,
            leads out of its folder, or holds no such member or several. Reading raises it too.
    """
    with ExitStack() as stack:
        with _told(str(path)):
            file: _Bytes = stack.enter_context(path.open("rb"))
            magic = file.read(len(_ZIP))
            file.seek(0)
            if magic.startswith(_GZIP):
                file = stack.enter_context(gzip.open(file))
            elif magic == _ZIP:
                archive = stack.enter_context(zipfile.ZipFile(file))
                only = _only(path, archive, suffix=suffix)
                file = stack.enter_context(_member(archive, only, where=str(path), most_bytes=most_bytes))
        yield io.BufferedReader(_Metered(file, str(path), most_bytes=most_bytes))


def parts(path: Path, wanted: Callable[[str], bool], *, most_bytes: int) -> Iterator[tuple[str, BinaryIO]]:
    """The bytes of every wanted member of a zip in the order of names, of another file its own; and where they stand.

    No name in a zip becomes a path.

    Raises:
        KnowledgeError: as `opened`; all wanted members together may hold `most_bytes`.
    """
    if not zipfile.is_zipfile(path):
        with opened(path, most_bytes=most_bytes) as file:
            yield str(path), file
        return
    with ExitStack() as stack:
        with _told(str(path)):
            archive = stack.enter_context(zipfile.ZipFile(path))
        members = [info for info in archive.infolist() if wanted(info.filename)]
        if sum(info.file_size for info in members) > most_bytes:
            raise _too_large(str(path), most_bytes)
        for info in sorted(members, key=lambda info: info.filename):
            where = f"{path}, {info.filename}"
            with _member(archive, info, where=where, most_bytes=most_bytes) as inner:
                yield where, io.BufferedReader(_Metered(inner, where, most_bytes=most_bytes))


def names(path: Path) -> tuple[str, ...]:
    """What the members of a zip are called; empty where a file is none, or cannot be read."""
    try:
        with _told(str(path)), zipfile.ZipFile(path) as archive:
            return tuple(archive.namelist())
    except KnowledgeError:
        return ()


def head(path: Path, *, suffix: str = "") -> str:
    """How a file's content begins, up to 64 KiB of it; empty where that cannot be read."""
    try:
        if not path.is_file():
            return ""
        with opened(path, suffix=suffix) as file:
            return file.read(_HEAD_BYTES).decode("utf-8-sig", errors="ignore")
    except (KnowledgeError, OSError):
        return ""


def files_of(path: Path, endings: tuple[str, ...]) -> tuple[Path, ...]:
    """The file itself, or all under a folder that end so, in one order; hidden ones are left out.

    Raises:
        KnowledgeError: one is a link that leads out of the folder, or the folder cannot be read.
    """
    if not path.is_dir():
        return (path,)
    try:
        found = [file for file in path.rglob("*") if file.name.endswith(endings) and _counts(file, path)]
    except OSError as error:
        raise unreadable(path, error) from error
    return tuple(sorted(found, key=lambda file: file.relative_to(path).parts))


def samples(path: Path, endings: tuple[str, ...]) -> tuple[Path, ...]:
    """The few files that tell what a source is: the first ones, and the first of every folder."""
    try:
        every = files_of(path, endings)
    except KnowledgeError:
        return ()
    first = {file.parent: file for file in reversed(every)}
    return tuple(dict.fromkeys((*every[:_LOOKED_INTO], *first.values())))


def version(path: Path, told: Collection[str], *, files: tuple[Path, ...], such_as: str) -> str:
    """The version that a source tells itself, else that its files' names do, its folder's, or the folder's around it.

    Raises:
        KnowledgeError: there are several, or none.
    """
    for places in ({file.name for file in files}, {path.name}, {path.absolute().parent.name}):
        versions = set(told) or {match[1] for name in places for match in _VERSION.finditer(name)}
        if len(versions) > 1:
            raise KnowledgeError(f"is of different versions: {', '.join(sorted(versions))}", where=str(path))
        if versions:
            return versions.pop()
    remedy = f"put the version into its name, such as {such_as}"
    raise KnowledgeError("does not tell its version", where=str(path), remedy=remedy)


def unreadable(path: Path | str, error: OSError) -> KnowledgeError:
    """The one-line form of a file that cannot be opened."""
    return KnowledgeError(f"cannot be read: {error.strerror or error}", where=str(path), remedy=REMEDY)


def _counts(file: Path, folder: Path) -> bool:
    """Whether it is a file that is not hidden; linked folders are not entered at all."""
    if any(part.startswith(".") for part in file.relative_to(folder).parts):
        return False
    if file.is_symlink() and not file.resolve().is_relative_to(folder.resolve()):
        raise KnowledgeError("is a link that leads out of its folder", where=str(file))
    return file.is_file()


class _Metered(io.RawIOBase):
    """What a file holds, up to a limit (a package's own word on its size is not trusted); what breaks is told."""

    def __init__(self, inner: _Bytes, where: str, *, most_bytes: int) -> None:
        super().__init__()
        self._inner = inner
        self._where = where
        self._most_bytes = self._left_bytes = most_bytes

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer)
        try:
            chunk = self._inner.read(len(view))
        except _FAILURES as error:
            raise _failure(self._where, error) from error
        self._left_bytes -= len(chunk)
        if self._left_bytes < 0:
            raise _too_large(self._where, self._most_bytes)
        view[: len(chunk)] = chunk
        return len(chunk)


@contextmanager
def _told(where: str) -> Iterator[None]:
    """Turn what goes wrong in a package or on the disk into one line. Not around what others do with the bytes."""
    try:
        yield
    except _FAILURES as error:
        raise _failure(where, error) from error


def _failure(where: str, error: Exception) -> KnowledgeError:
    if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
        return unreadable(where, error)
    remedy = "fetch the damaged package again: casemate fetch"
    return KnowledgeError(f"is packed, and damaged: {error}", where=where, remedy=remedy)


def _only(path: Path, archive: zipfile.ZipFile, *, suffix: str) -> zipfile.ZipInfo:
    """The one member that ends in `suffix`, of a zip of which no member leads out."""
    every = archive.infolist()
    for info in every:
        name = PurePosixPath(info.filename.replace("\\", "/"))
        if name.is_absolute() or ".." in name.parts or re.match(r"[A-Za-z]:", info.filename):
            raise KnowledgeError(f"holds a member that leads out of it: {info.filename!r}", where=str(path))
    wanted = [info for info in every if not info.is_dir() and info.filename.lower().endswith(suffix)]
    if len(wanted) != 1:
        raise KnowledgeError(f"holds {len(wanted) or 'no'} {suffix} files; one is expected", where=str(path))
    return wanted[0]


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, *, where: str, most_bytes: int) -> IO[bytes]:
    if info.file_size > most_bytes:
        raise _too_large(where, most_bytes)
    if info.flag_bits & _ENCRYPTED:
        raise KnowledgeError("is encrypted", where=where)
    if info.compress_type not in _METHODS or info.filename.endswith(".gz"):
        raise KnowledgeError("is packed by a method or in a way that we do not read", where=where)
    with _told(where):
        return archive.open(info)


def _too_large(where: str, most_bytes: int) -> KnowledgeError:
    return KnowledgeError(f"is larger than {most_bytes >> 20} MiB, or unpacks to more than that", where=where)
