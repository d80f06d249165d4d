"""What an earlier run knew of a project, matched by content against what lies there now."""

from __future__ import annotations

import gc
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from casemate.agents.audit.facts.summary import Module
from casemate.agents.audit.incremental.codec import packed, unpacked
from casemate.agents.audit.incremental.edition import edition
from casemate.agents.audit.incremental.store import Store, name_of
from casemate.finding import Location, Patch

Outcome = Module | str
"""What reading a file gave: its summary, or why there is none."""
Wanted = tuple[tuple[str, Location], ...]
"""Rule and place of the findings for which a fix was looked for."""
Fixes = tuple[Patch | None, ...]
"""What was found for each; None where no fix is safe."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file by path and content: its summary, and the fixes that were asked for."""

    path: str
    digest: str
    outcome: Outcome
    wanted: Wanted = ()
    fixes: Fixes = ()


@dataclass(frozen=True, slots=True)
class _Print:
    """What a file held (SHA-256) and what the system said of it then; a write since shows in the latter."""

    digest: str
    mark: tuple[int, ...]


@dataclass(slots=True)
class Past:
    """Made by `recall`; asked while a run goes on, told what is new, and kept at its end.

    Without a store it knows nothing and keeps nothing.
    """

    root: Path
    store: Store | None = None
    prints: dict[str, _Print] = field(default_factory=dict)
    entries: dict[str, _Entry] = field(default_factory=dict)
    lines: dict[str, bytes] = field(default_factory=dict)
    result: bytes = b""
    tree: str = ""
    sure: bool = True

    def whole(self, kind: Any) -> Any:
        """The result of the last run, of type `kind`, if nothing at all changed since; else None."""
        try:
            return unpacked(self.result, kind) if self.result else None
        except ValueError:
            return None

    def outcome(self, path: str) -> Outcome | None:
        """What reading this file gave when it held the same bytes; None if that is not known."""
        entry = self.entries.get(path)
        return entry.outcome if entry else None

    def fixes(self, path: str, wanted: Wanted) -> Fixes | None:
        """The fixes of these findings in this file, if they were looked for when it held the same bytes."""
        entry = self.entries.get(path)
        return entry.fixes if entry and entry.wanted == wanted else None

    def read(self, path: str, outcome: Outcome) -> Outcome:
        """Note what reading a file gave, and give it back."""
        if path in self.prints:
            self._note(_Entry(path, self.prints[path].digest, outcome))
        return outcome

    def mended(self, path: str, wanted: Wanted, *, fixes: Fixes) -> None:
        """Note the fixes of a file."""
        if path in self.entries:
            self._note(replace(self.entries[path], wanted=wanted, fixes=fixes))

    def broken(self, reason: str) -> str:
        """Note that a limit of this run cut something off, so that its result is not for the next; gives the reason."""
        self.sure = False
        return reason

    def keep(self, result: object, kind: Any) -> None:
        """Leave everything to the next run. What was written to while we looked is not kept."""
        if self.store is None:
            return
        still = [path for path, seen in self.prints.items() if seen.mark == _mark(self.root / path)]
        whole = self.sure and self.tree and len(still) == len(self.prints) and self.entries.keys() >= set(still)
        tree = self.tree if whole else ""
        self.store.keep(name_of(self.root), self._kept(still, tree, result=packed(result, kind) if whole else b""))

    def _note(self, entry: _Entry) -> None:
        self.entries[entry.path] = entry
        self.lines.pop(entry.path, None)

    def _kept(self, paths: Iterable[str], tree: str, *, result: bytes) -> Iterator[bytes]:
        yield packed((edition(), tree), tuple[str, str])
        yield result
        for path in paths:
            if path in self.entries:
                yield self.lines.get(path) or packed(self.entries[path], _Entry)


def recall(store: Store | None, root: Path, *, paths: Sequence[str], beside: str) -> Past:
    """What the last run left of a project.

    Args:
        store: where runs leave what they know; None: nowhere.
        root: the project.
        paths: the files that will be analysed, below it.
        beside: what else decides the result (skipped files, options), as text.
    """
    past = Past(root, store)
    if store is None:
        return past
    for path in paths:
        if seen := _print(root / path):
            past.prints[path] = seen
    if len(past.prints) == len(paths):
        past.tree = _digest_of(paths, past.prints, beside=beside)
    lines = store.lines(name_of(root))
    match _heading(next(lines, b"")):
        case (kept_by, tree) if kept_by == edition():
            result = next(lines, b"")
            if result and past.tree and past.tree == tree:
                past.result = result
            else:
                with _no_collection():
                    _recall_files(past, lines)
    return past


def _heading(line: bytes) -> tuple[str, str] | None:
    try:
        heading: tuple[str, str] = unpacked(line, tuple[str, str])
    except ValueError:
        return None
    return heading


@contextmanager
def _no_collection() -> Iterator[None]:
    """Hundreds of thousands of values are built and none is garbage: looking for some would double the time."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _recall_files(past: Past, lines: Iterable[bytes]) -> None:
    for line in lines:
        try:
            entry: _Entry = unpacked(line, _Entry)
        except ValueError:
            continue
        seen = past.prints.get(entry.path)
        if seen is not None and seen.digest == entry.digest:
            past.entries[entry.path] = entry
            past.lines[entry.path] = line


def _digest_of(paths: Sequence[str], prints: dict[str, _Print], *, beside: str) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path}\0{prints[path].digest}\0".encode(errors="surrogatepass"))
    digest.update(beside.encode(errors="surrogatepass"))
    return digest.hexdigest()


def _print(path: Path) -> _Print | None:
    """None where the file cannot be read as it should: reading it in a worker will say why."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                return None
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
    return _Print(digest, _facts(facts))


def _mark(path: Path) -> tuple[int, ...]:
    try:
        return _facts(path.lstat())
    except OSError:
        return ()


def _facts(facts: os.stat_result) -> tuple[int, ...]:
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
