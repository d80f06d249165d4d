"""A run's folder: records are appended, files written, and the manifest comes last.

A folder without `manifest.json` was broken off and is nobody's result. Folders are for their owner alone (0700, files
0600), and no link in them is followed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from casemate.errors import CasemateError, UsageError

SCHEMA_VERSION = 1
RECORDS = "records.jsonl"
_MANIFEST = "manifest.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_READ = os.O_RDONLY
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT
_REPLACE = os.O_WRONLY | os.O_TRUNC | os.O_CREAT


@dataclass(frozen=True, slots=True)
class Run:
    """An open run; `path` is its folder."""

    path: Path

    def append(self, record: Mapping[str, Any]) -> None:
        """Add one JSON line to `records.jsonl`.

        Raises:
            CasemateError: the run is sealed, or its folder does not take the bytes.
        """
        self._put(RECORDS, json.dumps(record, ensure_ascii=False) + "\n", flags=_APPEND)

    def write(self, name: str, text: str) -> None:
        """Write a file of the run, in place of one of the same name.

        Raises:
            UsageError: `name` is not a plain file name.
            CasemateError: the run is sealed, or its folder does not take the bytes.
        """
        if name in {RECORDS, _MANIFEST}:
            raise UsageError(f"{name} is not written by hand", where=str(self.path))
        self._put(name, text, flags=_REPLACE)

    def seal(self, manifest: Mapping[str, Any]) -> Sealed:
        """Close the run: hash its files, then put the manifest in place in one step.

        Args:
            manifest: what the run was and how it ended; must be JSON.

        Returns:
            The sealed run.

        Raises:
            CasemateError: the run is sealed already, or its folder does not take the bytes.
        """
        files = {name: _digest(self.path, name) for name in _names(self.path)}
        content = {"schema_version": SCHEMA_VERSION, "files": files, "manifest": dict(manifest)}
        draft = f"draft-{_MANIFEST}"
        self._put(draft, json.dumps(content, ensure_ascii=False, indent=1), flags=_REPLACE)
        with _told("the run cannot be sealed", self.path):
            (self.path / draft).replace(self.path / _MANIFEST)
            _sync_folder(self.path)
        return _sealed(self.path)

    def _put(self, name: str, text: str, *, flags: int) -> None:
        if (self.path / _MANIFEST).exists():
            raise CasemateError("a sealed run does not change", where=str(self.path))
        with _opened(self.path, name, flags=flags) as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())


@dataclass(frozen=True, slots=True)
class Sealed:
    """A finished run: its folder, what its manifest says, and the SHA-256 of each of its files by name."""

    path: Path
    manifest: Mapping[str, Any]
    files: Mapping[str, str]

    def read(self, name: str) -> str:
        """The text of a file of the run, as it was when the run was sealed.

        Raises:
            UsageError: the run has no such file.
            CasemateError: it was changed after sealing, or cannot be read.
        """
        if name not in self.files:
            raise UsageError(f"the run has no file {name!r}", where=str(self.path))
        with _opened(self.path, name, flags=_READ) as file:
            content = file.read()
        if hashlib.sha256(content).hexdigest() != self.files[name]:
            raise CasemateError(f"{name} was changed after the run was sealed", where=str(self.path))
        return content.decode()

    def records(self) -> tuple[dict[str, Any], ...]:
        """The records in the order in which they were appended; none if the run appended none."""
        lines = self.read(RECORDS).splitlines() if RECORDS in self.files else []
        return tuple(json.loads(line) for line in lines)


def create(root: Path, kind: str) -> Run:
    """Begin a run.

    Args:
        root: the folder of all runs; made if it is not there.
        kind: what sort of run (`audit`); names the folder between root and run.

    Returns:
        The run, in an empty folder whose name begins with the time (UTC), so that names sort by age.

    Raises:
        UsageError: `kind` is not a plain name.
        CasemateError: the folder cannot be made.
    """
    began = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    path = root / _plain(kind) / f"{began}-{secrets.token_hex(3)}"
    with _told("no run can begin here", path):
        for folder in (root, path.parent):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.mkdir(mode=0o700)
    return Run(path)


def latest(root: Path, kind: str) -> Sealed | None:
    """The newest sealed run of this kind; None if there is none. Broken off and damaged ones are passed over."""
    try:
        folders = sorted((root / _plain(kind)).iterdir(), reverse=True)
    except FileNotFoundError:
        return None
    for path in folders:
        if path.is_symlink() or not path.is_dir():
            continue
        try:
            return _sealed(path)
        except CasemateError:
            continue
    return None


def _sealed(path: Path) -> Sealed:
    with _opened(path, _MANIFEST, flags=_READ) as file:
        try:
            content = json.loads(file.read())
            manifest, files = content["manifest"], content["files"]
        except (ValueError, KeyError, TypeError) as error:
            raise CasemateError("the manifest is damaged", where=str(path)) from error
    if content.get("schema_version") != SCHEMA_VERSION:
        raise CasemateError("the run was sealed by another version", where=str(path))
    return Sealed(path, MappingProxyType(manifest), MappingProxyType(files))


def _names(folder: Path) -> list[str]:
    with _told("the run cannot be sealed", folder):
        return sorted(path.name for path in folder.iterdir())


def _digest(folder: Path, name: str) -> str:
    with _opened(folder, name, flags=_READ) as file:
        return hashlib.sha256(file.read()).hexdigest()


def _plain(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not a plain name", remedy="take letters, digits, dots and dashes")
    return name


@contextmanager
def _opened(folder: Path, name: str, *, flags: int) -> Iterator[BinaryIO]:
    """A file of a folder, neither of the two being a link."""
    with _told(f"{name} cannot be used", folder):
        inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            number = os.open(_plain(name), flags | os.O_NOFOLLOW, mode=0o600, dir_fd=inside)
        finally:
            os.close(inside)
        with os.fdopen(number, "rb" if flags == _READ else "wb") as file:
            yield file


@contextmanager
def _told(what: str, where: Path) -> Iterator[None]:
    """Turn a failure of the file system into one line."""
    try:
        yield
    except OSError as error:
        raise CasemateError(f"{what}: {error.strerror}", where=str(where)) from error


def _sync_folder(path: Path) -> None:
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
