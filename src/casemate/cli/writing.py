"""Writes a plan's files into a folder: each whole or not at all, secret ones readable by their owner alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from casemate.errors import UsageError
from casemate.plan.units.deployment import File


def write(folder: Path, files: Iterable[File]) -> Iterator[Path]:
    """Write the files and tell each path; the folder is made if it is missing, older files are replaced.

    Raises:
        UsageError: the folder cannot be made or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            yield _written(folder / file.name, file)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"cannot write there: {why}", where=str(folder), remedy="name a folder of your own") from error


def _written(path: Path, file: File) -> Path:
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, file.mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            os.fchmod(descriptor, file.mode)  # whatever the umask says
            opened.write(file.text)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path
