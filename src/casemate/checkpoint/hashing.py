"""Hashes the files of a folder, several at once, in constant memory."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock

from casemate.checkpoint.listing import opened
from casemate.errors import UsageError
from casemate.finding import Unread

_BUFFER_BYTES = 1 << 21
_MOST_THREADS = 4
"""SHA-256 takes 0.3 to 2 GB/s of one processor core; more than four only wait for the disk."""
_MOST_GIT_BYTES = 1 << 26
"""The hub keeps nothing larger as a git blob."""

Observer = Callable[[int, int], None]
"""Is told the bytes that are done and the bytes in all."""


@dataclass(frozen=True, slots=True)
class Digest:
    """A file's hashes, in hexadecimal; `git` is its id as a git blob, empty for a large one."""

    file: str
    size_bytes: int
    sha256: str
    git: str


def hashed(folder: Path, files: Sequence[str], *, observe: Observer | None = None) -> tuple[Digest | Unread, ...]:
    """Hash the files (paths in the folder), in their order; one that cannot be read does not stop the others."""
    meter = _Meter(observe, sum(size_of(folder / file) for file in files))
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as threads, _ended(meter):
        return tuple(threads.map(lambda file: _hashed(folder / file, file, meter=meter), files))


def size_of(path: Path) -> int:
    """A file's bytes; 0 where that cannot be told."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


class _Meter:
    """Counts what all threads read, and tells them when to stop."""

    def __init__(self, observe: Observer | None, total_bytes: int) -> None:
        self.stop = Event()
        self._observe = observe
        self._total_bytes = total_bytes
        self._done_bytes = 0
        self._lock = Lock()

    def add(self, size_bytes: int) -> None:
        with self._lock:
            self._done_bytes += size_bytes
            if self._observe:
                self._observe(self._done_bytes, self._total_bytes)


@contextmanager
def _ended(meter: _Meter) -> Iterator[None]:
    """An interrupt must not wait until the threads have read their files to the end."""
    try:
        yield
    finally:
        meter.stop.set()


def _hashed(path: Path, file: str, *, meter: _Meter) -> Digest | Unread:
    try:
        with opened(path) as content:
            size_bytes = os.fstat(content.fileno()).st_size
            sha256, git = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % size_bytes, usedforsecurity=False)
            is_small = size_bytes <= _MOST_GIT_BYTES
            read_bytes = 0
            while not meter.stop.is_set() and (chunk := content.read(_BUFFER_BYTES)):
                sha256.update(chunk)
                if is_small:
                    git.update(chunk)
                read_bytes += len(chunk)
                meter.add(len(chunk))
    except UsageError as error:
        return Unread(file, error.what)
    if read_bytes != size_bytes:
        return Unread(file, "its size changed while it was read")
    return Digest(file, size_bytes, sha256.hexdigest(), git.hexdigest() if is_small else "")
