"""A file on its way: one process at a time writes it, and it is hashed as it grows."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from casemate.artifacts.lock import Artifact
from casemate.errors import ArtifactError

CHUNK_BYTES = 1 << 20
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""How the system says that a disk, or our share of it, is full."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one artefact is; `source` says where its bytes come from at the moment."""

    artifact: str
    source: str
    done_bytes: int
    total_bytes: int


Observer = Callable[[Progress], None]
"""Told of progress, never by two threads at once, but not always by the same thread."""


class Partial:
    """What is there of an artefact so far.

    Args:
        file: open for reading and appending, unbuffered.
        artifact: what it shall become.
        observer: told after each growth.

    `source` is where bytes come from at the moment. `validator` is the entity tag under which a server sent the first
    half (RFC 9110, 8.8.3), empty if there is none.
    """

    def __init__(self, file: io.FileIO, artifact: Artifact, *, observer: Observer | None) -> None:
        self.artifact = artifact
        self.source = ""
        self.done_bytes = 0
        self.validator = _read_if_any(_validator_path(file))
        self._file = file
        self._observer = observer
        self._hash = hashlib.sha256()
        self.cut(os.fstat(file.fileno()).st_size)

    @property
    def missing_bytes(self) -> int:
        """How many bytes are still to come."""
        return self.artifact.size_bytes - self.done_bytes

    def comes_from(self, source: str) -> None:
        """Say where the next bytes come from, in a word for people."""
        self.source = source
        self.tell()

    def write(self, chunk: bytes) -> None:
        """Append.

        Raises:
            ArtifactError: this is more than was pinned.
            OSError: it could not be written.
        """
        if len(chunk) > self.missing_bytes:
            raise ArtifactError(f"more than the {self.artifact.size_bytes} bytes that were pinned")
        view = memoryview(chunk)
        while view:
            view = view[self._file.write(view) :]
        self._hash.update(chunk)
        self.done_bytes += len(chunk)
        self.tell()

    def cut(self, size_bytes: int) -> None:
        """Keep the first `size_bytes` only; a file that is longer than the artefact is worthless and emptied."""
        self.done_bytes = size_bytes if size_bytes <= self.artifact.size_bytes else 0
        self._file.truncate(self.done_bytes)
        self._file.seek(0)
        self._hash = hashlib.sha256()
        while chunk := self._file.read(CHUNK_BYTES):
            self._hash.update(chunk)

    def remember(self, validator: str) -> None:
        """Keep a server's entity tag with the file, for the day when the rest is asked for."""
        self.validator = validator
        path = _validator_path(self._file)
        if validator:
            path.write_text(validator, encoding="utf-8")
        else:
            path.unlink(missing_ok=True)

    def tell(self, ahead_bytes: int = 0) -> None:
        """Tell the observer; `ahead_bytes` have arrived but are not joined yet."""
        if self._observer is None:
            return
        done_bytes = min(self.done_bytes + ahead_bytes, self.artifact.size_bytes)
        self._observer(Progress(self.artifact.name, self.source, done_bytes, self.artifact.size_bytes))

    def matches(self) -> bool:
        """Whether these are exactly the pinned bytes."""
        return self.missing_bytes == 0 and self._hash.hexdigest() == self.artifact.sha256

    def sync(self) -> None:
        """Return when the bytes are on the disk."""
        os.fsync(self._file.fileno())


@contextmanager
def opened(path: Path, artifact: Artifact, *, observer: Observer | None = None) -> Iterator[Partial]:
    """The partial file at `path`, locked: another process that wants it waits here.

    Leaving the block keeps what is half done, for the next try; not so when the disk is full: it gets its space back.
    """
    file = _locked(path)
    try:
        yield Partial(file, artifact, observer=observer)
    except OSError as error:
        if error.errno in FULL:
            file.truncate(0)
        raise
    finally:
        if os.fstat(file.fileno()).st_size == 0:
            path.unlink(missing_ok=True)
        if not _is_at(file, path):
            _validator_path(file).unlink(missing_ok=True)
        file.close()


def _validator_path(file: io.FileIO) -> Path:
    return Path(f"{os.fsdecode(file.name)}.etag")


def _read_if_any(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        return ""


def _locked(path: Path) -> io.FileIO:
    while True:
        file = path.open("a+b", buffering=0)
        fcntl.flock(file, fcntl.LOCK_EX)
        # While we waited, its last owner may have removed it or renamed it to its final name.
        if _is_at(file, path):
            return file
        file.close()


def _is_at(file: io.FileIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
