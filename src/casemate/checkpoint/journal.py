"""The hidden folder in which an output grows, and its journal: what it will be, and how much is on disk for sure."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from casemate.checkpoint.jsonscan import shown_path
from casemate.checkpoint.layout import OWN
from casemate.checkpoint.listing import opened
from casemate.errors import UsageError

JOURNAL = f"{OWN}journal.json"
"""The journal's name in the hidden folder."""

_MOST_BYTES = 1 << 16


@dataclass(slots=True)
class Work:
    """The hidden folder of one output, and what is known of the file that is being written."""

    folder: Path
    fingerprint: str
    file: str = ""
    synced_bytes: int = 0

    def note(self, file: str, synced_bytes: int) -> None:
        """Remember that so many bytes of this file are on disk."""
        self.file, self.synced_bytes = file, synced_bytes
        draft = self.folder / f"{JOURNAL}.new"
        text = json.dumps({"fingerprint": self.fingerprint, "file": file, "synced_bytes": synced_bytes})
        with draft.open("w", encoding="utf-8") as journal:
            journal.write(text)
            journal.flush()
            os.fsync(journal.fileno())
        draft.replace(self.folder / JOURNAL)


@contextmanager
def locked(folder: Path, fingerprint: str) -> Iterator[Work]:
    """The hidden folder, ours alone until the end; what another plan left in it is removed."""
    if folder.is_symlink():
        raise UsageError("the hidden folder of the output is a link", where=shown_path(folder))
    folder.mkdir(exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError("another run is writing this output", where=shown_path(folder)) from error
        yield _continued(folder, fingerprint)
    finally:
        os.close(descriptor)


def read_journal(path: Path) -> tuple[str, str, int]:
    """Fingerprint, file, bytes on disk; empty texts and 0 where it is damaged."""
    with opened(path) as file:
        text = file.read(_MOST_BYTES)
    try:
        found = json.loads(text)
        return str(found["fingerprint"]), str(found["file"]), max(0, int(found["synced_bytes"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return "", "", 0


def _continued(folder: Path, fingerprint: str) -> Work:
    journal = folder / JOURNAL
    if journal.exists():
        before, file, synced_bytes = read_journal(journal)
        if before == fingerprint:
            return Work(folder, fingerprint, file, synced_bytes)
    elif any(child.name != f"{JOURNAL}.new" for child in folder.iterdir()):
        raise UsageError(
            "the hidden folder of the output holds something that no run of ours left",
            where=shown_path(folder),
            remedy="look at it and remove it",
        )
    for child in folder.iterdir():
        if child.name != JOURNAL:  # the last to go: it is what says that the rest is ours
            shutil.rmtree(child) if child.is_dir() and not child.is_symlink() else child.unlink()
    work = Work(folder, fingerprint)
    work.note("", 0)
    return work
