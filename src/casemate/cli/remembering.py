"""Explanations that a model has given, kept in the home folder for the next run, for its owner alone."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from casemate.settings import Settings

_LONGEST_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class Explanations:
    """An `audit.explain.Memory` of one small file each in `folder`, at most `most`; the oldest go first.

    What cannot be kept or read is asked for again.
    """

    folder: Path
    most: int = 2000

    def recall(self, name: str) -> str:
        """The text under a name; empty where there is none, or nothing that we wrote."""
        try:
            with os.fdopen(os.open(self.folder / name, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
                return file.read(_LONGEST_BYTES).decode()
        except (OSError, UnicodeDecodeError):
            return ""

    def keep(self, name: str, text: str) -> None:
        """Keep a text; another run of ours may do the same at this moment."""
        data = text.encode()
        if len(data) > _LONGEST_BYTES:
            return
        draft = self.folder / f".{secrets.token_hex(8)}.part"
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(data)
            draft.replace(self.folder / name)
            self._forget()
        with suppress(OSError):
            draft.unlink(missing_ok=True)

    def _forget(self) -> None:
        with os.scandir(self.folder) as entries:
            kept = list(entries)
        if len(kept) > self.most:
            kept.sort(key=lambda entry: (entry.stat(follow_symlinks=False).st_mtime_ns, entry.name))
            for entry in kept[: -self.most]:
                Path(entry.path).unlink(missing_ok=True)


def explanations(config: Settings) -> Explanations:
    """Where this user's explanations are kept."""
    return Explanations(config.root / "explanations")
