"""SHA-256 manifests in the format of `sha256sum` (GNU coreutils), and hashes that the hub left with what it sent.

The hub names a large file by its SHA-256 and a small one by its git blob id; its clients keep that name: the cache as
the name of the blob that a snapshot links to, a plain download in `.cache/huggingface/download/FILE.metadata`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from casemate.checkpoint.jsonscan import shown, shown_path
from casemate.checkpoint.listing import opened
from casemate.errors import UsageError

_MOST_BYTES = 1 << 26
_MOST_NOTE_BYTES = 1 << 12
_PLAIN = re.compile(rb"(\\?)([0-9a-fA-F]{64}) [ *](.+)")
_TAGGED = re.compile(rb"(\\?)SHA256 \((.+)\) = ([0-9a-fA-F]{64})")
_ESCAPES = {b"\\": b"\\", b"n": b"\n", b"r": b"\r"}
_HUB_NAME = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def read_manifest(path: Path) -> dict[str, str]:
    """Path in the folder to SHA-256, in hexadecimal.

    Raises:
        UsageError: it cannot be read; a line is not of the format; a path leads out of the folder; or a file has two
            hashes.
    """
    with opened(path) as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise UsageError(f"a manifest of more than {_MOST_BYTES} bytes", where=shown_path(path))
    found: dict[str, str] = {}
    for number, line in enumerate(content.split(b"\n"), start=1):
        stripped = line.rstrip(b"\r")
        if not stripped.strip() or stripped.startswith(b"#"):
            continue
        entry = _entry(stripped)
        if entry is None:
            raise UsageError(f"line {number} of the manifest is not of sha256sum's format", where=shown_path(path))
        name, digest = entry
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\0" in name:
            raise UsageError(f"line {number} of the manifest leads out of the folder", where=shown(name))
        if found.setdefault(os.path.normpath(name), digest) != digest:
            raise UsageError(f"line {number} of the manifest gives a second hash", where=shown(name))
    if not found:
        raise UsageError("the manifest names no file", where=shown_path(path))
    return found


def manifest_text(digests: Mapping[str, str]) -> bytes:
    """A manifest that `sha256sum -c` checks, sorted by path."""
    return b"".join(_line(name, digest) for name, digest in sorted(digests.items()))


def must_be_new(path: Path) -> None:
    """Refuse a manifest's place that is taken: what vouches for files is not overwritten in passing.

    Raises:
        UsageError: something is there, or no folder is above it.
    """
    try:
        is_taken, has_place = path.is_symlink() or path.exists(), path.parent.is_dir()
    except OSError as error:  # a name too long, a folder on the way that may not be entered
        raise UsageError(f"no place for a manifest: {error.strerror}", where=shown_path(path)) from error
    if is_taken:
        raise UsageError("the manifest is there already", where=shown_path(path), remedy="remove it or name another")
    if not has_place:
        raise UsageError("no folder for the manifest", where=shown_path(path))


def write_manifest(path: Path, digests: Mapping[str, str]) -> None:
    """Write a manifest, whole or not at all.

    Raises:
        UsageError: see `must_be_new`; or it cannot be written.
    """
    must_be_new(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        draft.write_bytes(manifest_text(digests))
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise UsageError(f"cannot write the manifest: {error.strerror}", where=shown_path(path)) from error


def hub_names(folder: Path, files: Iterable[str]) -> dict[str, str]:
    """What the hub called each file, where its clients left that: 64 hexadecimal digits of SHA-256, or 40 of git."""
    named = {file: _linked(folder / file) or _noted(folder, file) for file in files}
    return {file: name for file, name in named.items() if _HUB_NAME.fullmatch(name)}


def _entry(line: bytes) -> tuple[str, str] | None:
    if match := _PLAIN.fullmatch(line):
        escaped, digest, name = match.groups()
    elif match := _TAGGED.fullmatch(line):
        escaped, name, digest = match.groups()
    else:
        return None
    if escaped:
        name = re.sub(rb"\\([\\nr])", lambda found: _ESCAPES[found[1]], name)
    return os.fsdecode(name), digest.decode().lower()


def _line(name: str, digest: str) -> bytes:
    raw = os.fsencode(name)
    escaped = raw.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
    return (b"\\" if escaped != raw else b"") + digest.encode() + b"  " + escaped + b"\n"


def _linked(path: Path) -> str:
    return path.readlink().name if path.is_symlink() else ""


def _noted(folder: Path, file: str) -> str:
    note = folder / ".cache" / "huggingface" / "download" / f"{file}.metadata"
    try:
        with opened(note) as text:
            lines = text.read(_MOST_NOTE_BYTES).decode(errors="replace").splitlines()
    except UsageError:  # most folders have none
        return ""
    return lines[1].strip().strip('"') if len(lines) > 1 else ""
