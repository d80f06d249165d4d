"""The material of an audit: every file under a root, sorted into what can be analysed and what cannot, and why.

Links are never followed out of the root, nothing of the tree is executed, and no file is dropped in silence.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import stat
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from casemate.errors import UsageError
from casemate.finding import Unread

MAX_FILE_BYTES = 10 * 1000 * 1000
_HISTORY = frozenset({".git", ".hg", ".svn", ".bzr", ".jj", "CVS", "_darcs"})
_CACHES = frozenset({"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".tox", ".nox"})
_PYTHON = (".py", ".pyw")
_SHEBANG = re.compile(rb"^#!.*\bpython[0-9.]*\b")
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SNIFF_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Material:
    """`python` are paths to analyse, relative to `root` with forward slashes, in order; the rest says why not."""

    root: Path
    python: tuple[str, ...] = ()
    skipped: tuple[Unread, ...] = ()
    failed: tuple[Unread, ...] = ()


def walk(root: Path) -> Material:
    """Sort every file under a root; a single file is its own material.

    Raises:
        UsageError: the path is not there, cannot be read, or holds no file.
    """
    base, entries = (root, _entries(root)) if _is_folder(root) else (root.parent, iter([root]))
    python: list[str] = []
    skipped: list[Unread] = []
    failed: list[Unread] = []
    real = os.path.realpath(base)
    for entry in entries:
        path = entry.relative_to(base).as_posix()
        try:
            reason = _reason_to_skip(entry, real)
        except OSError as error:
            failed.append(Unread(path, f"cannot be read: {error.strerror or error}"))
            continue
        if reason:
            skipped.append(Unread(path, reason))
        else:
            python.append(path)
    if not (python or skipped or failed):
        raise UsageError(
            "nothing to audit: the folder is empty", where=str(root), remedy="name a folder that has files"
        )
    return Material(base, tuple(python), tuple(skipped), tuple(failed))


def decode(data: bytes) -> str:
    """A source file's text by its BOM, its coding line (PEP 263), UTF-8, UTF-16 without a BOM, or GBK.

    Raises:
        ValueError: no reading makes sense of it; the message says which were tried.
    """
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data.decode(encoding)
    for encoding in (_declared(data), "utf-8", _wide(data), "gb18030"):
        if not encoding:
            continue
        try:
            text = data.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
        if "\0" not in text or encoding == "gb18030":
            return text
    raise ValueError("neither UTF-8, UTF-16 nor GBK")


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


def _entries(root: Path) -> Iterator[Path]:
    """Files in order, and folders that are not entered (they are one line of the ledger each)."""
    waiting = [(root, True)]
    while waiting:
        path, is_folder = waiting.pop()
        if not is_folder or (path != root and _reason_not_to_enter(path)):
            yield path
            continue
        try:
            with os.scandir(path) as scan:
                entries = sorted(scan, key=lambda entry: entry.name, reverse=True)
                inner = [(Path(entry.path), entry.is_dir(follow_symlinks=False)) for entry in entries]
        except OSError:
            yield path
            continue
        waiting += inner


def _reason_not_to_enter(folder: Path) -> str:
    if folder.name in _HISTORY:
        return "version control's own folder, not entered"
    if folder.name in _CACHES:
        return "tool cache, not entered"
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
        head = file.read(_SNIFF_BYTES)
    if not (path.suffix in _PYTHON or (not path.suffix and _SHEBANG.match(head))):
        return "not text" if _is_binary(head) else f"no rules for this language ({path.suffix or path.name})"
    return f"larger than {MAX_FILE_BYTES // 1_000_000} MB" if size_bytes > MAX_FILE_BYTES else ""


def _reason_not_to_follow(link: Path, root: str) -> str:
    # What the system cannot follow (a circle, a chain too long) is not for us to resolve.
    if not os.path.exists(link):  # noqa: PTH110 - whatever goes wrong is False
        return "link that leads nowhere"
    inside = Path(os.path.realpath(link)).is_relative_to(root)
    return "link within the audited folder, not followed" if inside else "link out of the audited folder, not followed"


def _is_binary(head: bytes) -> bool:
    return b"\0" in head and not any(head.startswith(bom) for bom, _ in _BOMS) and not _wide(head)


def _declared(data: bytes) -> str:
    """The encoding that the first two lines declare; empty where there is none or it is unknown."""
    try:
        encoding, lines = tokenize.detect_encoding(io.BytesIO(data[:_SNIFF_BYTES]).readline)
    except (SyntaxError, UnicodeDecodeError):
        return ""
    return encoding if any(b"coding" in line for line in lines) else ""


def _wide(data: bytes) -> str:
    """UTF-16 without a BOM shows as a null in every other byte of mostly ASCII text."""
    head = data[:_SNIFF_BYTES]
    half = max(len(head) // 2, 1)
    if head[1::2].count(0) > half * 0.7:
        return "utf-16-le"
    return "utf-16-be" if head[0::2].count(0) > half * 0.7 else ""
