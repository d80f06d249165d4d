"""Which modules a quantisation method passes over: the lists of names, globs and expressions that configs carry.

A list comes with the config, from anywhere. Expressions are therefore not handed to a backtracking matcher whole: only
a subset that is matched in linear time is understood, and the rest is told, not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import translate
from functools import cached_property

_MARK = "re:"
_LONGEST = 200
_PIECE = re.compile(
    r"""(?: [\w\-/:] | \\[.\-_/d] (?:\+)? | \.(?![*+?{]) | \[[\w\-]{1,20}\]\+? | \((?:\?:)?[\w|.\-\\]{1,120}\)\?? )*""",
    re.VERBOSE,
)
"""Letters, escaped points, digits, classes, plain alternatives: nothing in it tries twice."""
_WRAPPERS = re.compile(r"^(?:model\.language_model|language_model\.model|language_model|model)\.")
"""Prefixes by which wrappers of the same text model differ."""


@dataclass(frozen=True)
class Names:
    """A set of modules, written as a config writes it.

    `re:` begins an expression that is matched from the name's start; a text with `*` or `?` is a glob over the whole
    name; any other text names a module, and where `inside`, all modules in it, with or without what stands before.
    """

    entries: tuple[str, ...] = ()
    inside: bool = True

    @classmethod
    def of(cls, entries: Iterable[str], *, inside: bool = True) -> Names:
        """A set of these entries, each once."""
        return cls(tuple(dict.fromkeys(entries)), inside=inside)

    def has(self, module: str) -> bool:
        """Whether the module is in the set."""
        dotted = f".{_bare(module)}."
        if self._plain and not self._plain.isdisjoint(_runs(dotted) if self.inside else {dotted[:-1]}):
            return True
        if self._globs is not None and any(self._globs.match(name) for name in (module, dotted[1:-1])):
            return True
        return any(_found(pieces, module) for pieces in self._expressions)

    @cached_property
    def patterns(self) -> int:
        """How many entries are globs or expressions; each costs time for each module."""
        return sum(map(_special, self.entries))

    @cached_property
    def not_understood(self) -> tuple[str, ...]:
        """The expressions that are passed over."""
        return tuple(entry for entry in self.entries if entry.startswith(_MARK) and _pieces(entry) is None)

    @cached_property
    def _plain(self) -> frozenset[str]:
        return frozenset("." + _bare(entry) for entry in self.entries if not _special(entry))

    @cached_property
    def _globs(self) -> re.Pattern[str] | None:
        globs = [entry for entry in self.entries if _special(entry) and not entry.startswith(_MARK)]
        return re.compile("|".join(map(translate, globs))) if globs else None

    @cached_property
    def _expressions(self) -> tuple[tuple[re.Pattern[str], ...], ...]:
        found = (_pieces(entry) for entry in self.entries if entry.startswith(_MARK))
        return tuple(pieces for pieces in found if pieces is not None)


def _bare(name: str) -> str:
    return _WRAPPERS.sub("", name)


def _special(entry: str) -> bool:
    return entry.startswith(_MARK) or "*" in entry or "?" in entry


def _runs(dotted: str) -> set[str]:
    """Every run of whole components of a dotted name, with the point before it."""
    points = [at for at, letter in enumerate(dotted) if letter == "."]
    return {dotted[begin:end] for number, begin in enumerate(points) for end in points[number + 1 :]}


def _pieces(entry: str) -> tuple[re.Pattern[str], ...] | None:
    """The parts of an expression between its `.*`; None where it is not one of those that we understand."""
    text = entry.removeprefix(_MARK)
    parts = text.removeprefix("^").removesuffix("$").split(".*")
    if len(text) > _LONGEST or not all(_PIECE.fullmatch(part) for part in parts):
        return None
    if not text.endswith("$") and not text.endswith(".*"):
        parts.append("")
    try:
        return tuple(re.compile(part) for part in parts)
    except re.error:
        return None


def _found(pieces: tuple[re.Pattern[str], ...], module: str) -> bool:
    """Match the first piece at the start, the last at the end, and each between at its first place."""
    first = pieces[0].match(module)
    if first is None:
        return False
    if len(pieces) == 1:
        return pieces[0].fullmatch(module) is not None
    at = first.end()
    for piece in pieces[1:-1]:
        found = piece.search(module, at)
        if found is None:
            return False
        at = found.end()
    return any(pieces[-1].fullmatch(module, begin) for begin in range(at, len(module) + 1))
