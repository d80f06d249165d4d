"""One member of a zip archive, read as data: no name in it becomes a path, and nothing in it is run."""

from __future__ import annotations

import hashlib
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from casemate.artifacts.partial import CHUNK_BYTES, Partial
from casemate.errors import ArtifactError

_ENCRYPTED = 0x1
_KNOWN = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, ValueError, OSError)
"""What `zipfile` raises on bytes that are no archive, or only half of one."""


def join(archive: Path, partial: Partial, *, member: str, size_bytes: int, sha256: str) -> None:
    """Append one member to a partial file.

    Args:
        archive: the zip file; a wheel is one.
        partial: grows by `size_bytes`, or not at all.
        member: name inside the archive.
        size_bytes: what the member must have; another size is refused before a byte is unpacked.
        sha256: what the member's bytes must hash to.

    Raises:
        ArtifactError: the archive is damaged, or its member is not the pinned one.
        OSError: the partial file could not be written.
    """
    begin_bytes = partial.done_bytes
    digest = hashlib.sha256()
    try:
        for chunk in _chunks(archive, member, size_bytes=size_bytes):
            digest.update(chunk)
            partial.write(chunk)
    except ArtifactError:
        partial.cut(begin_bytes)
        raise
    if digest.hexdigest() != sha256:
        partial.cut(begin_bytes)
        raise ArtifactError(f"{archive.name} holds other bytes than were pinned")


def _chunks(archive: Path, member: str, *, size_bytes: int) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(archive) as unpacked:
            info = unpacked.NameToInfo.get(member)
            if info is None or info.file_size != size_bytes:
                raise ArtifactError(f"{archive.name} does not hold the {size_bytes} bytes that were pinned")
            if info.flag_bits & _ENCRYPTED or info.compress_type not in _KNOWN:
                raise ArtifactError(f"{archive.name} is packed in a way that we do not read")
            with unpacked.open(info) as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    yield chunk
    except _DAMAGED as error:
        raise ArtifactError(f"{archive.name} is damaged or no zip archive") from error
