"""Unpacks one archive into an empty folder, as data: bounded, without links, never outside the folder. Runs in workers.

What is left out is said; an archive that breaks a bound is not analysed at all, so that a bomb hides nothing in part.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from casemate.errors import CasemateError
from casemate.finding import Unread

_ZIPS = (".zip", ".whl", ".egg", ".pyz")
_TARS: Mapping[str, Callable[[Path], Any]] = {
    ".tar": lambda path: path.open("rb"),
    ".tar.gz": gzip.open,
    ".tgz": gzip.open,
    ".tar.bz2": bz2.open,
    ".tbz2": bz2.open,
    ".tar.xz": lzma.open,
    ".txz": lzma.open,
}
_MAX_BYTES = 1 << 30
_MAX_ENTRIES = 50_000
_MAX_RATIO = 200
_SMALL_BYTES = 32 << 20
"""Up to here an archive may unpack to any multiple of its size: a table of zeros is no bomb."""
_MAX_PARTS = 64
_MAX_PATH_BYTES = 1000
_CHUNK_BYTES = 1 << 16
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError)
"""What reading a broken archive can raise; `RuntimeError` stands for kinds of zip entries that nobody knows."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What of an archive was left out, and why; paths are those of the audit."""

    skipped: tuple[Unread, ...]


def is_archive(path: str) -> bool:
    """Whether a file's name is that of an archive that can be opened."""
    return path.lower().endswith((*_ZIPS, *_TARS))


def unpack(asked: tuple[str, str, str]) -> Unpacked | str:
    """Unpack one archive.

    Args:
        asked: the archive, the folder to fill (it is made), and the archive's path in the audit.

    Returns:
        What was left out; or why nothing of it can be used.
    """
    source, target, shown = Path(asked[0]), Path(asked[1]), asked[2]
    target.mkdir(parents=True, mode=0o700)
    name = source.name.lower()
    entries = _zip_entries if name.endswith(_ZIPS) else _tar_entries
    try:
        budget = _Budget(max(_SMALL_BYTES, source.stat().st_size * _MAX_RATIO))
        return Unpacked(tuple(_filled(target, entries(source, budget), shown=shown)))
    except CasemateError as error:
        return f"archive not opened: {error}"
    except (*_DAMAGED, RuntimeError) as error:
        return f"damaged archive: {str(error) or type(error).__name__}"


@dataclass(slots=True)
class _Budget:
    """What may still be read out of an archive, in bytes and entries."""

    by_ratio_bytes: int
    read_bytes: int = 0
    entries: int = 0

    def spend(self, size_bytes: int) -> None:
        self.read_bytes += size_bytes
        if self.read_bytes > _MAX_BYTES:
            raise CasemateError(f"it holds more than {_MAX_BYTES >> 30} GiB")
        if self.read_bytes > self.by_ratio_bytes:
            raise CasemateError(f"it unpacks to more than {_MAX_RATIO} times its size")

    def enter(self) -> None:
        self.entries += 1
        if self.entries > _MAX_ENTRIES:
            raise CasemateError(f"it holds more than {_MAX_ENTRIES} entries")


@dataclass(slots=True)
class _Counted:
    """A stream that counts what is read from it."""

    stream: IO[bytes]
    budget: _Budget
    closed: bool = field(default=False, init=False)

    def read(self, size: int = -1) -> bytes:
        data = self.stream.read(min(size, _CHUNK_BYTES) if size >= 0 else _CHUNK_BYTES)
        self.budget.spend(len(data))
        return data


@dataclass(frozen=True, slots=True)
class _Entry:
    """A member: its name, why it is left out (empty: it is not), and its bytes."""

    name: str
    reason: str
    stream: IO[bytes] | None = None


def _filled(target: Path, entries: Iterator[_Entry], *, shown: str) -> Iterator[Unread]:
    for entry in entries:
        reason = entry.reason or _reason_against(entry.name)
        if not reason and entry.stream is not None:
            reason = _written(target / entry.name, entry.stream)
        if reason:
            yield Unread(f"{shown}!/{entry.name}", reason)


def _reason_against(name: str) -> str:
    parts = name.split("/")
    if name.startswith("/") or {"..", ".", ""} & set(parts) or "\0" in name:
        return "name that leads out of the archive"
    if len(parts) > _MAX_PARTS or len(os.fsencode(name)) > _MAX_PATH_BYTES:
        return "name too long"
    return ""


def _written(path: Path, stream: IO[bytes]) -> str:
    """Write a new file; why it could not be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        return "second entry of this name"
    except OSError as error:
        return f"cannot be unpacked: {error.strerror or error}"
    with os.fdopen(file, "wb") as out:
        while chunk := stream.read(_CHUNK_BYTES):
            out.write(chunk)
    return ""


def _zip_entries(source: Path, budget: _Budget) -> Iterator[_Entry]:
    with zipfile.ZipFile(source) as archive:
        for member in archive.infolist():
            budget.enter()
            name = _zip_name(member)
            kind = stat.S_IFMT(member.external_attr >> 16)
            if member.is_dir():
                continue
            if member.flag_bits & 1:
                yield _Entry(name, "encrypted")
            elif kind and kind != stat.S_IFREG:
                yield _Entry(name, "link or device in an archive, not unpacked")
            else:
                with archive.open(member) as stream:
                    yield _Entry(name, "", cast("IO[bytes]", _Counted(stream, budget)))


def _zip_name(member: zipfile.ZipInfo) -> str:
    """The name as it was meant: without the flag for UTF-8 many programs write UTF-8 or GBK all the same."""
    if member.flag_bits & 0x800 or member.filename.isascii():
        return member.filename
    raw = member.filename.encode("cp437", "replace")
    for encoding in ("utf-8", "gb18030"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return member.filename


def _tar_entries(source: Path, budget: _Budget) -> Iterator[_Entry]:
    suffix = next(suffix for suffix in sorted(_TARS, key=len, reverse=True) if source.name.lower().endswith(suffix))
    with _TARS[suffix](source) as raw:
        stream = cast("BinaryIO", _Counted(raw, budget))
        with tarfile.open(fileobj=stream, mode="r|", errors="surrogateescape") as archive:
            for member in archive:
                budget.enter()
                name = member.name.removeprefix("./")
                if member.isdir():
                    continue
                if not member.isreg():
                    yield _Entry(name, "link or device in an archive, not unpacked")
                else:
                    yield _Entry(name, "", archive.extractfile(member))
