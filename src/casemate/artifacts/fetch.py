"""Artefacts on this machine: have them, get them, check them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from casemate.artifacts import carrier, partial, url
from casemate.artifacts.lock import Artifact, Carrier, Url
from casemate.artifacts.partial import Observer, Partial
from casemate.artifacts.url import Patience
from casemate.errors import ArtifactError

_RESERVE_BYTES = 16 << 20
"""Left free on the disk, for the file system's own books and the neighbours."""
_MIB = 1 << 20


def fetch(
    artifact: Artifact,
    folder: Path,
    *,
    observer: Observer | None = None,
    offline: bool = False,
    patience: Patience = Patience(),  # noqa: B008 - it is frozen
) -> Path:
    """Have the artefact in `folder`: sources are tried in order, half a download is gone on with.

    Args:
        artifact: what to have.
        folder: where artefacts lie; made if it is not there.
        observer: told of progress.
        offline: only look; never ask an address.
        patience: when an address is given up.

    Returns:
        The verified file.

    Raises:
        ArtifactError: no source gave the pinned bytes, the disk cannot hold them, or we are offline.
    """
    if path := present(artifact, folder):
        return path
    if offline:
        raise ArtifactError(
            f"{artifact.name} is not there and fetching is switched off",
            where=str(folder / artifact.file),
            remedy="put the file there, or fetch with offline = false",
        )
    with _told(artifact, folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with partial.opened(_partial_path(artifact, folder), artifact, observer=observer) as growing:
            # Another process may have been faster while we waited for the lock.
            return present(artifact, folder) or _obtain(growing, folder, patience=patience)


def present(artifact: Artifact, folder: Path) -> Path | None:
    """The artefact's file if it lies in `folder` and is what was pinned.

    A file that was hashed once is known again by size and time, so that this costs nothing; `verify` hashes.
    """
    path = folder / artifact.file
    return path if _known(artifact, path) or verify(artifact, folder) else None


def verify(artifact: Artifact, folder: Path) -> bool:
    """Hash the artefact's file, whatever is remembered of it; whether it is there and is what was pinned."""
    path = folder / artifact.file
    try:
        with path.open("rb") as file:
            size_bytes = os.fstat(file.fileno()).st_size
            good = size_bytes == artifact.size_bytes
            good = good and hashlib.file_digest(file, "sha256").hexdigest() == artifact.sha256
    except OSError:
        return False
    if good:
        _remember(artifact, path)
    else:
        _memory(path).unlink(missing_ok=True)
    return good


def needed_bytes(artifact: Artifact, folder: Path) -> int:
    """Disk space that `fetch` still needs in `folder`, temporary files included; 0 if the artefact is there."""
    if present(artifact, folder):
        return 0
    growing = _partial_path(artifact, folder)
    done_bytes = growing.stat().st_size if growing.exists() else 0
    temporary_bytes = max(_temporary_bytes(artifact, source) for source in artifact.sources)
    return max(artifact.size_bytes - done_bytes, 0) + temporary_bytes + _RESERVE_BYTES


def _obtain(growing: Partial, folder: Path, *, patience: Patience) -> Path:
    artifact = growing.artifact
    _check_disk(artifact, folder)
    failures: list[str] = []
    with _workspace(folder / f".{artifact.file}.work") as work:
        for source in artifact.sources:
            try:
                _take(source, growing, work=work, patience=patience)
            except ArtifactError as error:
                failures.append(f"{growing.source}: {error}")
                continue
            return _keep(growing, folder)
    raise ArtifactError(
        f"no source gave {artifact.name}",
        where="; ".join(failures),
        remedy=f"check the network, or put the file at {folder / artifact.file}",
    )


def _take(source: Url | Carrier, growing: Partial, *, work: Path, patience: Patience) -> None:
    """Grow to the full size and check; what was resumed and does not match is got once more from its first byte."""
    while True:
        resumed = growing.done_bytes > 0
        if growing.missing_bytes:
            match source:
                case Url():
                    url.take(source, growing, work=work, patience=patience)
                case Carrier():
                    carrier.take(source, growing, work=work)
        if growing.matches():
            return
        growing.cut(0)
        if not resumed:
            raise ArtifactError("sent other bytes than were pinned; they are removed")


@contextmanager
def _workspace(path: Path) -> Iterator[Path]:
    """An empty folder for temporary files; one that a killed process left is taken over, the lock being ours."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(mode=0o700)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _keep(growing: Partial, folder: Path) -> Path:
    path = folder / growing.artifact.file
    growing.sync()
    _partial_path(growing.artifact, folder).replace(path)
    _remember(growing.artifact, path)
    return path


def _check_disk(artifact: Artifact, folder: Path) -> None:
    free_bytes, need_bytes = shutil.disk_usage(folder).free, needed_bytes(artifact, folder)
    if need_bytes > free_bytes:
        raise ArtifactError(
            f"{artifact.name} needs {need_bytes / _MIB:.0f} MiB of disk, {free_bytes / _MIB:.0f} MiB are free",
            where=str(folder),
            remedy="free some space, or set home to a larger disk",
        )


def _temporary_bytes(artifact: Artifact, source: Url | Carrier) -> int:
    match source:
        case Url():
            return artifact.size_bytes if source.unpack else 0
        case Carrier():
            return carrier.temporary_bytes(source)


@contextmanager
def _told(artifact: Artifact, folder: Path) -> Iterator[None]:
    """Turn a failure of the file system into one line."""
    try:
        yield
    except OSError as error:
        full = error.errno in partial.FULL
        raise ArtifactError(
            f"{artifact.name} could not be written: {error.strerror or error}",
            where=str(folder),
            remedy="free some space, or set home to a larger disk" if full else "make the folder writable",
        ) from error


def _partial_path(artifact: Artifact, folder: Path) -> Path:
    return folder / f".{artifact.file}.partial"


def _memory(path: Path) -> Path:
    return path.with_name(f".{path.name}.verified.json")


def _remember(artifact: Artifact, path: Path) -> None:
    # A folder that we may read but not write only costs the next look a hash.
    with suppress(OSError):
        _memory(path).write_text(json.dumps(_fingerprint(artifact, path)), encoding="ascii")


def _known(artifact: Artifact, path: Path) -> bool:
    try:
        return bool(json.loads(_memory(path).read_bytes()) == _fingerprint(artifact, path))
    except (OSError, ValueError):
        return False


def _fingerprint(artifact: Artifact, path: Path) -> dict[str, int | str]:
    status = path.stat()
    return {"size_bytes": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": artifact.sha256}
