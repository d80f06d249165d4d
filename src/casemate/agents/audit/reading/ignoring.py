"""Which files of a checkout git leaves alone: untracked, and named by a `.gitignore`.

What git tracks is never ignored, whatever the files say: who writes the code must not choose what is looked at. Where
there is no checkout, or git cannot tell what it tracks, nothing is ignored, for the same reason.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from casemate.agents.audit.reading.checkout import Checkout, checkout_of
from casemate.errors import UsageError

_MAX_BYTES = 64 * 1024
_STARS = re.compile(r"\*+")
_MAX_STARS = 3
"""A pattern with more stars can take for ever on a long name; it is left out, so that its files are looked at."""


@dataclass(frozen=True, slots=True)
class Ignoring:
    """The rules of one checkout. `kept` are paths that git tracks, from the top, and every folder above them."""

    top: Path
    kept: frozenset[str]
    _rules: dict[str, GitIgnoreSpec | None] = field(default_factory=dict)

    def ignores(self, path: Path, *, is_folder: bool) -> bool:
        """Whether git leaves a file or folder alone.

        Args:
            path: absolute, below the top, without links; the folders above it are known not to be ignored.
            is_folder: whether it is one.
        """
        inner = path.relative_to(self.top).as_posix()
        if inner in self.kept:
            return False
        for above in PurePosixPath(inner).parents:
            folder = "" if str(above) == "." else f"{above}/"
            rules = self._rules_of(folder)
            decided = rules.check_file(inner.removeprefix(folder) + "/" * is_folder).include if rules else None
            if decided is not None:
                return decided
        return False

    def _rules_of(self, folder: str) -> GitIgnoreSpec | None:
        if folder not in self._rules:
            self._rules[folder] = _parsed(self.top / folder / ".gitignore")
        return self._rules[folder]


def ignoring_of(folder: Path) -> Ignoring | None:
    """The rules that hold in a folder; None where nothing is ignored there.

    A folder that git leaves alone was named by the user all the same, so in it nothing is ignored.
    """
    checkout = checkout_of(folder)
    rules = ignoring(checkout) if checkout else None
    if checkout is None or rules is None:
        return None
    real = Path(os.path.realpath(folder))
    inner = [above for above in (real, *real.parents) if above != checkout.top and above.is_relative_to(checkout.top)]
    return None if any(rules.ignores(above, is_folder=True) for above in reversed(inner)) else rules


def ignoring(checkout: Checkout) -> Ignoring | None:
    """The rules of a checkout; None where git cannot tell what it tracks."""
    try:
        tracked = checkout.tracked()
    except UsageError:  # no git on this machine
        return None
    if tracked is None:
        return None
    kept = set(tracked)
    for path in tracked:
        folder = path.rpartition("/")[0]
        while folder and folder not in kept:
            kept.add(folder)
            folder = folder.rpartition("/")[0]
    return Ignoring(checkout.top, frozenset(kept))


def _parsed(path: Path) -> GitIgnoreSpec | None:
    """The rules of one file; git, too, follows no link here."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > _MAX_BYTES:
                return None
            lines = file.read(_MAX_BYTES).decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    patterns: list[GitIgnoreSpecPattern] = []
    for line in lines:
        if len(_STARS.findall(line)) <= _MAX_STARS:
            patterns += _pattern(line)
    return GitIgnoreSpec(patterns) if patterns else None


def _pattern(line: str) -> list[GitIgnoreSpecPattern]:
    """One line's pattern; a line that means nothing gives none, as in git."""
    try:
        return list(GitIgnoreSpec.from_lines([line]).patterns)
    except ValueError:
        return []
