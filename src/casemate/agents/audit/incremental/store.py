"""The folder in which audits leave what the next run can use: one file a project, for its owner alone.

A file is lines, each behind its own checksum. What is damaged, foreign or of another edition is passed over as if it
were not there, and a failure to write costs the next run time and nothing else: so nothing here raises.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MAX_BYTES = 512 * 1000 * 1000
"""All projects together; beyond, those go that were audited longest ago."""
_CHECK = 32
_SUFFIX = ".lines"
_DRAFT = ".draft"
_DRAFT_AGE_S = 3600.0
"""A draft that is older was broken off."""


@dataclass(frozen=True, slots=True)
class Store:
    """`folder` is made when something is kept; `max_bytes` bounds it."""

    folder: Path
    max_bytes: int = MAX_BYTES

    def lines(self, name: str) -> Iterator[bytes]:
        """The lines of a project, in order, a damaged one empty; from now on the project counts as used."""
        try:
            file = _opened(self._ours(), f"{name}{_SUFFIX}")
        except OSError:
            return
        with closing(file), suppress(OSError):
            os.utime(file.fileno())
            for line in file:
                check, content = line[:_CHECK], line[_CHECK:-1]
                yield content if line.endswith(b"\n") and check == _check(content) else b""

    def keep(self, name: str, lines: Iterable[bytes]) -> None:
        """Put a project's lines in place of those it had, in one step; of two runs at once the later one's stay."""
        draft = self.folder / f"{name}-{secrets.token_hex(8)}{_DRAFT}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._ours()
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
                for line in lines:
                    file.write(_check(line) + line + b"\n")
            draft.replace(self.folder / f"{name}{_SUFFIX}")
        except OSError:
            with suppress(OSError):
                draft.unlink()
        else:
            self._bound()

    def _ours(self) -> Path:
        """The folder. Raises OSError where it is not there, or not ours alone to write."""
        if not _is_ours(self.folder.lstat(), stat.S_ISDIR):
            raise PermissionError(self.folder)
        return self.folder

    def _bound(self) -> None:
        """Remove broken drafts, and the projects that were audited longest ago, until the rest fits."""
        held: list[tuple[os.stat_result, str]] = []
        with suppress(OSError), os.scandir(self.folder) as scan:
            held = sorted(((entry.stat(follow_symlinks=False), entry.path) for entry in scan), key=_age, reverse=True)
        newest_s = held[0][0].st_mtime if held else 0.0
        total_bytes = 0
        for facts, path in held:
            total_bytes += facts.st_size
            broken = path.endswith(_DRAFT) and facts.st_mtime < newest_s - _DRAFT_AGE_S
            if broken or (path.endswith(_SUFFIX) and total_bytes > self.max_bytes):
                with suppress(OSError):
                    Path(path).unlink()


def name_of(root: Path) -> str:
    """The name under which a project is kept: 32 hexadecimal digits of where it lies."""
    return hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:32]


def _opened(folder: Path, name: str) -> BinaryIO:
    """A file that is ours alone to write. Raises OSError where it is not, or not there."""
    path = folder / name
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    if not _is_ours(os.fstat(file.fileno()), stat.S_ISREG):
        file.close()
        raise PermissionError(path)
    return file


def _is_ours(facts: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    return is_kind(facts.st_mode) and facts.st_uid == os.geteuid() and not facts.st_mode & 0o022


def _age(held: tuple[os.stat_result, str]) -> float:
    return held[0].st_mtime


def _check(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_CHECK // 2).hexdigest().encode()
