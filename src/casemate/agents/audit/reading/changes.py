"""Which lines changed since a revision: git tells what was, the files themselves what is.

Files are compared here, by content, and never by git: what a repository configures for comparing would run.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from casemate.agents.audit.reading.checkout import Blob, Checkout, Link, checkout_of
from casemate.agents.audit.reading.encodings import decode
from casemate.errors import UsageError
from casemate.finding import Finding, Location

_MAX_LINES = 100_000
"""Beyond, a changed file counts as changed in whole: comparing may take time that grows with the square."""
_LINE_END = re.compile("\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Changes:
    """Changed lines of each changed file, by its path under the audited root; None stands for every line."""

    lines: dict[str, frozenset[int] | None] = field(default_factory=dict)

    def touches(self, finding: Finding) -> bool:
        """Whether a finding's own place, or any step of its flow, stands on a changed line."""
        return any(map(self._holds, (finding.location, *(step.location for step in finding.flow))))

    def _holds(self, place: Location) -> bool:
        if place.path not in self.lines:
            return False
        changed = self.lines[place.path]
        return changed is None or not changed.isdisjoint(range(place.line, place.end_line + 1))


def checked(root: Path, revision: str) -> tuple[Checkout, str]:
    """The checkout of a root and the commit that a revision names, before anything is analysed.

    Raises:
        UsageError: there is no checkout, no git, or no such revision.
    """
    checkout = checkout_of(root if root.is_dir() else root.parent)
    if checkout is None:
        raise UsageError("not in a git checkout", where=str(root), remedy="leave out --diff, or name a checkout")
    if commit := checkout.commit(revision):
        return checkout, commit
    raise UsageError(
        "no such revision", where=f"{revision!r:.100}", remedy="name a commit, branch or tag that `git log` knows"
    )


def changes(root: Path, paths: Iterable[str], *, since: tuple[Checkout, str]) -> Changes:
    """What changed under a root in comparison with a commit; untracked files are new in every line.

    Args:
        root: the folder that paths are relative to.
        paths: the files to compare; those in an archive change with it.
        since: what `checked` gave.
    """
    checkout, commit = since
    real = Path(os.path.realpath(root))
    before = _Before(checkout, commit)
    changed: dict[str, frozenset[int] | None] = {}
    compare: list[tuple[str, Path, Blob]] = []
    for path in paths:
        archive = "" if os.path.lexists(real / path) else path.partition("!/")[0]
        file = real / (archive or path)
        owner, blob = before.find(file.relative_to(checkout.top).as_posix())
        if blob is not None and _is_same(file, blob):
            continue
        if blob is None or archive:
            changed[path] = None
        else:
            compare.append((path, owner, blob))
    for owner in {owner for _, owner, _ in compare}:
        mine = [(path, blob) for path, whose, blob in compare if whose == owner]
        contents = Checkout(owner).contents(blob.name for _, blob in mine)
        for (path, _), old in zip(mine, contents, strict=True):
            changed[path] = _changed_lines(old, real / path)
    return Changes(changed)


class _Before:
    """The files of a commit, and of the commits at which it held its submodules."""

    def __init__(self, checkout: Checkout, commit: str) -> None:
        self._top = checkout.top
        self._files = {"": checkout.files(commit)}

    def find(self, path: str) -> tuple[Path, Blob | None]:
        """The checkout that a path belongs to, and what was there."""
        prefix, inner = "", path
        while True:
            found = self._files[prefix].get(inner)
            if isinstance(found, Blob):
                return self._top / prefix, found
            above = [inner[:at] for at, mark in enumerate(inner) if mark == "/"]
            link = next((folder for folder in above if isinstance(self._files[prefix].get(folder), Link)), None)
            if link is None:
                return self._top / prefix, None
            at = self._files[prefix][link]
            prefix, inner = f"{prefix}{link}/", inner[len(link) + 1 :]
            if prefix not in self._files:
                self._files[prefix] = self._of_submodule(self._top / prefix, at)

    @staticmethod
    def _of_submodule(top: Path, at: Blob | Link) -> dict[str, Blob | Link]:
        """What a submodule held; nothing where it is not there or does not know the commit."""
        submodule = Checkout(top)
        commit = submodule.commit(at.commit) if isinstance(at, Link) else None
        return submodule.files(commit) if commit else {}


def _is_same(path: Path, blob: Blob) -> bool:
    """Whether a file is the object, by the name that git would give it; a file that cannot be read is not."""
    try:
        data = path.read_bytes()
    except OSError:
        return False
    name = hashlib.sha1 if len(blob.name) == 40 else hashlib.sha256
    return name(b"blob %d\0" % len(data) + data).hexdigest() == blob.name


def _changed_lines(old: bytes, path: Path) -> frozenset[int] | None:
    """Lines of a file that differ from what it was; line ends do not count, nor does the encoding."""
    try:
        before, after = (_LINE_END.split(decode(data).text) for data in (old, path.read_bytes()))
    except (OSError, ValueError):
        return None
    if len(before) + len(after) > _MAX_LINES:
        return None
    blocks = difflib.SequenceMatcher(None, before, after).get_opcodes()
    # Where lines only went away, the lines around the gap are what changed.
    return frozenset(
        line
        for tag, _, _, begin, end in blocks
        if tag != "equal"
        for line in (range(begin + 1, end + 1) if end > begin else (begin, begin + 1))
    )
