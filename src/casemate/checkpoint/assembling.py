"""Writes a laid-out checkpoint: constant memory, goes on after an interruption, appears under its name whole or not.

Everything is written in a hidden folder beside the output, whose journal tells what it will be and how far the bytes
of the present file are on disk for sure; at the end that folder takes the output's name. Another run of the same plan
finds the journal and goes on; after a run with other rules or of a changed source it begins anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from casemate.checkpoint.journal import JOURNAL, Work, locked, read_journal
from casemate.checkpoint.jsonscan import shown_path
from casemate.checkpoint.layout import OWN, Layout, Range, Segment
from casemate.checkpoint.listing import opened
from casemate.errors import CasemateError, UsageError

SYNC_EVERY_BYTES = 1 << 28
"""At most so much is written again after an interruption."""

_BUFFER_BYTES = 1 << 22
_UNDER_WAY = f"{OWN}part"
_SPARE_BYTES = 1 << 24
"""For folders, the journal and what the file system adds."""

Observer = Callable[[int, int], None]
"""Is told the bytes that are written and the bytes of the whole output."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """What was written: files, bytes, and how many of the bytes an earlier, interrupted run had written."""

    output: Path
    files: int
    size_bytes: int
    resumed_bytes: int


def assemble(
    layout: Layout, output: Path, *, observe: Observer | None = None, sync_every_bytes: int = SYNC_EVERY_BYTES
) -> Assembled:
    """Write a checkpoint.

    Args:
        layout: what to write.
        output: the folder that it becomes; it may not be there yet, or is empty.
        observe: is told how far it is.
        sync_every_bytes: how much is written between two entries of the journal.

    Raises:
        UsageError: the output lies in the source or the other way round, holds something, is being written by
            another run, or the disk has too little room.
        CasemateError: the disk failed. Running the same again goes on from there.
    """
    try:
        target = _apart(layout.source, output)
        sizes = {file: _length(segments) for file, segments in layout.files()}
        fingerprint = _fingerprint(layout)
        if _is_finished(target, fingerprint):
            return Assembled(target, len(sizes), sum(sizes.values()), sum(sizes.values()))
        hidden = target.parent / f"{OWN}{target.name}"
        _must_have_room(hidden, sum(sizes.values()))
        with locked(hidden, fingerprint) as work:
            resumed = _resumed_bytes(work, sizes)
            _write_all(
                layout,
                work,
                progress=_Progress(observe, resumed, sum(sizes.values())),
                sync_every_bytes=sync_every_bytes,
            )
            if _fingerprint(layout) != fingerprint:
                raise UsageError("the source changed while it was copied", where=shown_path(layout.source))
            _publish(work.folder, target)
        return Assembled(target, len(sizes), sum(sizes.values()), resumed)
    except OSError as error:
        raise CasemateError(
            f"cannot write the checkpoint: {error.strerror}",
            where=shown_path(output),
            remedy="once that is mended, run the same command again: it goes on where it stopped",
        ) from error


@dataclass(slots=True)
class _Progress:
    """How far the output is; tells whoever watches."""

    observe: Observer | None
    done_bytes: int
    total_bytes: int

    def add(self, size_bytes: int) -> None:
        self.done_bytes += size_bytes
        if self.observe:
            self.observe(self.done_bytes, self.total_bytes)


def _apart(source: Path, output: Path) -> Path:
    """The output's real place, beside which its hidden folder will be; refused where source and output touch."""
    try:
        real, target = source.resolve(strict=True), output.resolve()
    except (RuntimeError, ValueError) as error:  # links in a circle, a zero byte
        raise UsageError("the output's path leads nowhere", where=shown_path(output)) from error
    if target.is_relative_to(real) or real.is_relative_to(target):
        raise UsageError("the output would lie in the source, or the source in it", where=shown_path(output))
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and not (target / JOURNAL).exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError("the output is there already", where=shown_path(output), remedy="name a new folder")
    return target


def _length(segments: tuple[Segment, ...]) -> int:
    return sum(part.end - part.start if isinstance(part, Range) else len(part) for part in segments)


def _fingerprint(layout: Layout) -> str:
    """What will be written, and from which state of the source; two runs with one fingerprint write the same bytes."""
    digest = hashlib.sha256()
    sources: set[str] = set()
    for file, segments in layout.files():
        parts = [
            [part.file, part.start, part.end] if isinstance(part, Range) else hashlib.sha256(part).hexdigest()
            for part in segments
        ]
        sources.update(part.file for part in segments if isinstance(part, Range))
        digest.update(json.dumps([file, parts]).encode())
    for file in sorted(sources):
        state = (layout.source / file).stat()
        digest.update(json.dumps([file, state.st_size, state.st_mtime_ns, state.st_ino]).encode())
    return digest.hexdigest()


def _is_finished(target: Path, fingerprint: str) -> bool:
    """Whether a run that was interrupted at its very last step left the whole output."""
    journal = target / JOURNAL
    if not journal.exists():
        return False
    if read_journal(journal)[0] != fingerprint:
        raise UsageError("the output is there already", where=shown_path(target), remedy="name a new folder")
    journal.unlink()
    return True


def _resumed_bytes(work: Work, sizes: dict[str, int]) -> int:
    """What is on disk for sure; forgets a note on a file of which less is there than the note says."""
    part = work.folder / _UNDER_WAY
    if work.synced_bytes and (not part.is_file() or part.stat().st_size < work.synced_bytes):
        work.synced_bytes = 0
    whole = {file for file, size in sizes.items() if _is_whole(work.folder / file, size)}
    return sum(sizes[file] for file in whole) + (work.synced_bytes if work.file not in whole else 0)


def _is_whole(path: Path, size_bytes: int) -> bool:
    return path.is_file() and path.stat().st_size == size_bytes


def _must_have_room(hidden: Path, size_bytes: int) -> None:
    """What an earlier run left counts as free: it is used again or removed."""
    there = sum(path.lstat().st_size for path in hidden.rglob("*"))
    free = shutil.disk_usage(hidden.parent).free + there
    if free < size_bytes + _SPARE_BYTES:
        raise UsageError(
            f"the disk has {free >> 20:,} MiB free; {-(-size_bytes >> 20):,} MiB are to be written, and "
            f"{_SPARE_BYTES >> 20} MiB stay free besides",
            where=shown_path(hidden.parent),
            remedy="free some, or name a folder on another disk",
        )


def _write_all(layout: Layout, work: Work, *, progress: _Progress, sync_every_bytes: int) -> None:
    for file, segments in layout.files():
        path = work.folder / file
        if _is_whole(path, _length(segments)):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        work.note(file, work.synced_bytes if work.file == file else 0)
        part = work.folder / _UNDER_WAY
        with part.open("r+b" if work.synced_bytes else "wb") as out:
            out.truncate(work.synced_bytes)
            out.seek(work.synced_bytes)
            for chunk in _chunks(layout.source, segments, skip=work.synced_bytes):
                out.write(chunk)
                progress.add(len(chunk))
                if out.tell() - work.synced_bytes >= sync_every_bytes:
                    out.flush()
                    os.fdatasync(out.fileno())
                    work.note(file, out.tell())
            out.flush()
            os.fsync(out.fileno())
        part.replace(path)


def _chunks(source: Path, segments: Iterable[Segment], *, skip: int) -> Iterator[bytes]:
    for segment in segments:
        length = _length((segment,))
        passed = min(skip, length)
        skip -= passed
        if isinstance(segment, bytes):
            yield segment[passed:]
        elif passed < length:
            yield from _read(source / segment.file, segment.start + passed, end=segment.end)


def _read(path: Path, start: int, *, end: int) -> Iterator[bytes]:
    with opened(path) as file:
        file.seek(start)
        while start < end:
            chunk = file.read(min(_BUFFER_BYTES, end - start))
            if not chunk:
                raise UsageError("the source changed while it was copied", where=shown_path(path))
            start += len(chunk)
            yield chunk


def _publish(folder: Path, target: Path) -> None:
    """Give the hidden folder its name. The journal goes after that: until then it says that nothing is missing."""
    for place in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        _sync(place)
    folder.replace(target)
    _sync(target.parent)
    (target / JOURNAL).unlink()


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
