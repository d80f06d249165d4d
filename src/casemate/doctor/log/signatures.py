"""The known failures: `signatures.toml` as values, and the sieve that finds the few lines worth an expression."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

_TABLE = Path(__file__).parents[1] / "signatures.toml"
_WORD = re.compile(rb"[a-z]{3,}")
_DIGITS = b"0123456789"
_LOWER = bytes(range(256)).lower()
_REMEMBERED_SHAPES = 1 << 14
_LONGEST_SHAPE_BYTES = 320

Severity = Literal["fatal", "degraded", "request", "notice"]
"""fatal: the engine does not start or dies; degraded: it works, worse than it could; request: one request fails;
notice: worth knowing, often harmless."""

Role = Literal["cause", "symptom", "wrapper"]
"""A symptom may follow from something else in the log and ranks below any cause; a wrapper never is one."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A known failure.

    Attributes:
        id, component: what it is called, and the part of the machine or engine that it is about.
        severity, role: see the types.
        words: groups of words; a line is looked at if it holds every word of one group, in any order.
        expression: what a line's text has to match; named groups are the figures in it.
        frames: what the frames of the line's traceback have to match; None: no matter.
        stages: where the engine was in its start (`load`, `profile`, `capture`, `serve`); empty: no matter.
            A signature with frames and stages needs one of the two.
        arguments: what the engine's non-default arguments have to match; None: no matter.
        any_level: counts in lines of level INFO and WARNING, too (a kernel's or NCCL's lines have levels of their own).
        root_cause, fix, verify, source, applies_to: what to tell.
        explains: ids that are its consequences when both are in one log.
        needs: ids of which one has to be there, too; without it this is a notice.
        confidence: how sure the cause is, given the line.
    """

    id: str
    component: str
    severity: Severity
    role: Role
    words: tuple[str, ...]
    expression: re.Pattern[str]
    frames: re.Pattern[str] | None
    stages: tuple[str, ...]
    arguments: re.Pattern[str] | None
    any_level: bool
    root_cause: str
    fix: str
    verify: str
    source: tuple[str, ...]
    applies_to: str
    explains: tuple[str, ...]
    needs: tuple[str, ...]
    confidence: Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Trend:
    """A finding that no single line shows: what to tell of it. Its condition is in `trends`, by id."""

    id: str
    component: str
    severity: Severity
    root_cause: str
    fix: str
    verify: str
    source: tuple[str, ...]
    applies_to: str


@cache
def signatures() -> tuple[Signature, ...]:
    """All signatures in their order in the table."""
    return tuple(_signature(entry) for entry in _read()["signature"])


@cache
def trends() -> dict[str, Trend]:
    """What to tell of each trend, by id."""
    told = [Trend(**(entry | {"source": tuple(entry["source"])})) for entry in _read()["trend"]]
    return {trend.id: trend for trend in told}


def shape(text: str) -> tuple[bytes, ...]:
    """The words of a text that count for the sieve: three letters or more, lower case, digits left out."""
    return tuple(_WORD.findall(text.encode().translate(_LOWER, _DIGITS)))


class Sieve:
    """Tells which groups of words a line holds. Lines of one shape (equal but for digits) are looked at once.

    Args:
        groups: groups of words; a group is found if each of its words is in the line.
    """

    def __init__(self, groups: Iterable[str]) -> None:
        self._groups = [frozenset(shape(group)) for group in groups]
        self._by_word: dict[bytes, list[int]] = {}
        for index, group in enumerate(self._groups):
            self._by_word.setdefault(max(sorted(group), key=len), []).append(index)
        self._rare = frozenset(self._by_word)
        self._known: dict[bytes, tuple[int, ...]] = {}

    def __call__(self, piece: bytes) -> tuple[int, ...]:
        """Indices of the groups that are in the piece."""
        key = piece.translate(_LOWER, _DIGITS)
        found = self._known.get(key)
        if found is not None:
            return found
        words = frozenset(_WORD.findall(key))
        hit = [index for word in words & self._rare for index in self._by_word[word] if self._groups[index] <= words]
        found = tuple(sorted(hit))
        if len(key) <= _LONGEST_SHAPE_BYTES:
            if len(self._known) >= _REMEMBERED_SHAPES:
                self._known.clear()
            self._known[key] = found
        return found


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads(_TABLE.read_text(encoding="utf-8"))


def _signature(entry: dict[str, Any]) -> Signature:
    optional: dict[str, Any] = {"role": "cause", "any_level": False, "confidence": "high", "applies_to": "any"}
    lists = {name: tuple(entry.get(name, ())) for name in ("words", "stages", "source", "explains", "needs")}
    expressions = ("expression", "frames", "arguments")
    compiled = {name: re.compile(entry[name]) if name in entry else None for name in expressions}
    return Signature(**(optional | entry | lists | compiled))
