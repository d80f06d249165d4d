"""The material of an audit: every file under a root, sorted into what can be analysed and what cannot, and why.

Links are never followed out of the root, nothing of the tree is executed, and no file is dropped in silence.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from casemate.agents.audit.reading.archives import is_archive
from casemate.agents.audit.reading.checkout import Checkout, is_top
from casemate.agents.audit.reading.encodings import SNIFF_BYTES, is_binary
from casemate.agents.audit.reading.ignoring import Ignoring, ignoring, ignoring_of
from casemate.agents.audit.reading.kinds import Kind, kind
from casemate.errors import UsageError
from casemate.finding import Unread

MAX_FILE_BYTES = 10 * 1000 * 1000
_HISTORY = frozenset({".git", ".hg", ".svn", ".bzr", ".jj", "CVS", "_darcs"})
_CACHES = frozenset({"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".tox", ".nox"})


_HELD = dict.fromkeys(_HISTORY, "version control's own folder, not entered") | dict.fromkeys(
    _CACHES, "tool cache, not entered"
)
"""Folders that are not entered, and why."""
ARCHIVE = "archive, not opened (`--archives` opens it)"
_BUNDLES = (".js", ".mjs", ".cjs", ".css", ".map")


@dataclass(frozen=True, slots=True)
class Material:
    """`files` are paths to analyse, relative to `root` with forward slashes, in order; the rest says why not."""

    root: Path
    files: tuple[str, ...] = ()
    skipped: tuple[Unread, ...] = ()
    failed: tuple[Unread, ...] = ()


def walk(root: Path, *, ignore: bool = True) -> Material:
    """Sort every file under a root; a single file is its own material.

    Args:
        root: a folder or a file.
        ignore: whether to leave out what git leaves alone (a single file is never left out).

    Raises:
        UsageError: the path is not there, cannot be read, or holds no file.
    """
    is_folder = _is_folder(root)
    base = root if is_folder else root.parent
    files: list[str] = []
    skipped: list[Unread] = []
    failed: list[Unread] = []
    real = os.path.realpath(base)
    for entry, ignored in _entries(root, ignore=ignore) if is_folder else [(root, False)]:
        path = entry.relative_to(base).as_posix()
        try:
            reason = "ignored by .gitignore" if ignored else _reason_to_skip(entry, real)
        except OSError as error:
            failed.append(Unread(path, f"cannot be read: {error.strerror or error}"))
            continue
        if reason:
            skipped.append(Unread(path, reason))
        else:
            files.append(path)
    if not (files or skipped or failed):
        raise UsageError(
            "nothing to audit: the folder is empty", where=str(root), remedy="name a folder that has files"
        )
    return Material(base, tuple(files), tuple(skipped), tuple(failed))


def _is_folder(root: Path) -> bool:
    """Whether a root that is there and can be opened is a folder."""
    try:
        if is_folder := stat.S_ISDIR(root.stat().st_mode):
            os.scandir(root).close()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # the last: a null byte in the path
        raise UsageError("no such path", where=str(root), remedy="name a file or a folder that exists") from None
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", where=f"{root!s:.200}") from error
    return is_folder


def _entries(root: Path, *, ignore: bool) -> Iterator[tuple[Path, bool]]:
    """Files in order, and folders that are not entered (one line of the ledger each), with whether git ignores them."""
    real = Path(os.path.realpath(root))
    waiting: list[tuple[Path, bool, Ignoring | None]] = [(root, True, ignoring_of(root) if ignore else None)]
    while waiting:
        path, is_folder, rules = waiting.pop()
        if path != root and rules and rules.ignores(real / path.relative_to(root), is_folder=is_folder):
            yield path, path.name not in _HELD
            continue
        if not is_folder or (path != root and _reason_not_to_enter(path)):
            yield path, False
            continue
        if ignore and path != root and is_top(path):  # a submodule, or a checkout within: it has rules of its own
            rules = ignoring(Checkout(real / path.relative_to(root)))
        try:
            with os.scandir(path) as scan:
                entries = sorted(scan, key=lambda entry: entry.name, reverse=True)
                inner = [(Path(entry.path), entry.is_dir(follow_symlinks=False), rules) for entry in entries]
        except OSError:
            yield path, False
            continue
        waiting += inner


def _reason_not_to_enter(folder: Path) -> str:
    if folder.name in _HELD:
        return _HELD[folder.name]
    if folder.name == "node_modules" or os.path.isfile(folder / "pyvenv.cfg"):  # noqa: PTH113 - too long a path is False
        return "installed packages, not entered"
    return ""


def _reason_to_skip(path: Path, root: str) -> str:
    """Why a file is not analysed; empty where it is. Raises OSError where even that cannot be told."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return _reason_not_to_follow(path, root)
    if stat.S_ISDIR(mode):
        os.scandir(path).close()  # says why it cannot be listed, if that is the reason
        if reason := _reason_not_to_enter(path):
            return reason
        raise OSError("it changed while it was read")
    if not stat.S_ISREG(mode):
        return "not a regular file"
    with path.open("rb") as file:
        size_bytes = os.fstat(file.fileno()).st_size
        head = file.read(SNIFF_BYTES)
    if kind(path.name, head) is None:
        return _reason_without_rules(path, head)
    if is_binary(head) and kind(path.name, head) is not Kind.PYTHON:
        return "not text"
    return f"larger than {MAX_FILE_BYTES // 1_000_000} MB" if size_bytes > MAX_FILE_BYTES else ""


def _reason_without_rules(path: Path, head: bytes) -> str:
    if is_archive(path.name):
        return ARCHIVE
    if is_binary(head):
        return "not text"
    if path.suffix in _BUNDLES and len(head) == SNIFF_BYTES and b"\n" not in head:
        return "minified"
    return f"no rules for this language ({path.suffix or path.name})"


def _reason_not_to_follow(link: Path, root: str) -> str:
    # What the system cannot follow (a circle, a chain too long) is not for us to resolve.
    if not os.path.exists(link):  # noqa: PTH110 - whatever goes wrong is False
        return "link that leads nowhere"
    inside = Path(os.path.realpath(link)).is_relative_to(root)
    return "link within the audited folder, not followed" if inside else "link out of the audited folder, not followed"
