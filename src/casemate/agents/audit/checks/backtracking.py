"""How long a backtracking matcher can take for a regular expression: from the ambiguity of its automaton. Pure.

The expression becomes an automaton without empty moves whose states are the positions of its characters (Glushkov).
It takes exponential time if some state can go round to itself on one text in two ways, polynomial time if on one text
a state can stay, another can stay, and the first can get to the second (Weber and Seidl 1991; CWE-1333); and either
only if a text can fail after that.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from re import _constants as op  # type: ignore[attr-defined]  # the parser has had no public name since 3.11
from typing import Any

from casemate.agents.audit.checks.characters import ALPHABET, mask_of
from casemate.agents.audit.checks.patterns import parsed_form

_MAX_STATES = 160
_MAX_STEPS = 60_000
_COPIES = 3
"""Of the body of a counted repetition; one that may come more often than `_MANY` times counts as endless."""
_MANY = 12


class Cost(IntEnum):
    """The worst time as a function of the text's length."""

    LINEAR = 0
    POLYNOMIAL = 1
    EXPONENTIAL = 2


@functools.lru_cache(maxsize=1024)
def worst_case(pattern: str, *, whole: bool = False) -> Cost:
    """The worst time of matching from a fixed beginning.

    Args:
        pattern: a regular expression; one that does not parse counts as linear.
        whole: whether the text must match to its end (`fullmatch`).
    """
    if not re.search(r"[*+]|\{\d*,|\?.*\?.*\?", pattern):
        return Cost.LINEAR
    form = parsed_form(pattern)
    if form is None:
        return Cost.LINEAR
    try:
        automaton = _Builder().build(form)
    except (RecursionError, _TooLarge):
        return Cost.LINEAR
    if whole:
        automaton.ends = dict.fromkeys(automaton.ends, True)
    return _Search(automaton).cost()


class _TooLarge(Exception):  # noqa: N818  # a signal inside this module, never seen outside
    """The automaton is beyond what is worth looking at."""


@dataclass(slots=True)
class _Part:
    """A piece of the expression: where it can begin and end, whether it can be empty, whether its end is anchored."""

    first: set[int] = field(default_factory=set)
    last: set[int] = field(default_factory=set)
    empty: bool = True
    anchored: bool = False


@dataclass(slots=True)
class _Automaton:
    """States are positions: `masks` what each reads, `follow` where it goes, `doubled` moves that are there twice.

    `ends` are the accepting ones; true where the text must end there.
    """

    masks: list[int]
    follow: list[set[int]]
    ends: dict[int, bool]
    doubled: set[tuple[int, int]]


class _Builder:
    def __init__(self) -> None:
        self.masks: list[int] = []
        self.follow: list[set[int]] = []
        self.doubled: set[tuple[int, int]] = set()

    def build(self, parsed: Any) -> _Automaton:
        whole = self._sequence(parsed)
        return _Automaton(self.masks, self.follow, dict.fromkeys(whole.last, whole.anchored), self.doubled)

    def _sequence(self, items: Iterable[Any]) -> _Part:
        whole = _Part()
        for item in items:
            part = self._item(item)
            if part is not None:
                whole = self._join(whole, part)
        return whole

    def _join(self, left: _Part, right: _Part) -> _Part:
        for state in left.last:
            self.follow[state] |= right.first
        return _Part(
            left.first | right.first if left.empty else left.first,
            left.last | right.last if right.empty else right.last,
            left.empty and right.empty,
            right.anchored,
        )

    def _item(self, item: tuple[Any, Any]) -> _Part | None:
        code, argument = item
        if code in {op.MAX_REPEAT, op.MIN_REPEAT}:
            low, high, body = argument
            return self._repeat(low, high, body=body)
        if code is op.SUBPATTERN:
            return self._sequence(argument[3])
        if code is op.BRANCH:
            return self._choice([self._sequence(way) for way in argument[1]])
        if code in {op.POSSESSIVE_REPEAT, op.ATOMIC_GROUP}:
            return self._atomic(code, argument)
        if code is op.AT:
            return _Part(anchored=argument in {op.AT_END, op.AT_END_STRING})
        mask = mask_of(code, argument)
        return None if mask is None else self._state(mask)

    def _state(self, mask: int) -> _Part:
        if len(self.masks) >= _MAX_STATES:
            raise _TooLarge
        self.masks.append(mask)
        self.follow.append(set())
        state = len(self.masks) - 1
        return _Part({state}, {state}, empty=False)

    def _atomic(self, code: Any, argument: Any) -> _Part:
        """What gives nothing back is read once: one state that stays, for all that it may read."""
        before = len(self.masks)
        inner = self._sequence(argument if code is op.ATOMIC_GROUP else argument[2])
        mask = 0
        for known in self.masks[before:]:
            mask |= known
        del self.masks[before:], self.follow[before:]
        part = self._state(mask)
        part.empty = inner.empty or (code is op.POSSESSIVE_REPEAT and argument[0] == 0)
        return part

    def _choice(self, ways: list[_Part]) -> _Part:
        return _Part(
            set().union(*(way.first for way in ways)),
            set().union(*(way.last for way in ways)),
            any(way.empty for way in ways),
            all(way.anchored for way in ways),
        )

    def _repeat(self, low: int, high: Any, *, body: Any) -> _Part:
        endless = high is op.MAXREPEAT or high - low > _MANY
        fixed = min(low, _COPIES)
        whole = _Part()
        for _ in range(fixed):
            whole = self._join(whole, self._sequence(body))
        if endless:
            return self._join(whole, self._loop(body))
        for _ in range(min(high - low, _COPIES)):
            extra = self._sequence(body)
            extra.empty = True
            whole = self._join(whole, extra)
        return whole

    def _loop(self, body: Any) -> _Part:
        part = self._sequence(body)
        for state in part.last:
            # A loop around a loop: the same way round twice over, as in `(a+)+`.
            self.doubled |= {(state, again) for again in part.first & self.follow[state]}
            self.follow[state] |= part.first
        part.empty = True
        return part


class _Search:
    """Walks pairs and triples of states that read the same text."""

    def __init__(self, automaton: _Automaton) -> None:
        self._a = automaton
        self._steps = 0
        self._can_reach = [self._reachable(state) for state in range(len(automaton.masks))]

    def cost(self) -> Cost:
        loops = [s for s in range(len(self._a.masks)) if s in self._can_reach[s] and self._can_fail(s)]
        if any(self._goes_round_twice(state) for state in loops):
            return Cost.EXPONENTIAL
        pairs = ((p, q) for p in loops for q in loops if p != q and q in self._can_reach[p])
        if any(self._stays_and_moves(p, q) for p, q in pairs):
            return Cost.POLYNOMIAL
        return Cost.LINEAR

    def _reachable(self, start: int) -> frozenset[int]:
        seen: set[int] = set()
        waiting = list(self._a.follow[start])
        while waiting:
            state = waiting.pop()
            if state not in seen:
                seen.add(state)
                waiting.extend(self._a.follow[state])
        return frozenset(seen)

    def _can_fail(self, state: int) -> bool:
        """Whether after this state some printable text makes the whole match fail."""
        ends = self._a.ends
        if ends.get(state) is False:
            return False  # the matcher may stop right here, and be content
        after = self._a.follow[state]
        if any(ends.get(other) is False and other in self._closure_of_any(state) for other in after):
            return False
        readable = 0
        for other in after:
            readable |= self._a.masks[other]
        return bool(~readable & _PRINTABLE) or state not in ends

    def _closure_of_any(self, state: int) -> set[int]:
        """States that the loop of a state can always get to: they read everything."""
        return {other for other in self._a.follow[state] if self._a.masks[other] & _PRINTABLE == _PRINTABLE}

    def _goes_round_twice(self, start: int) -> bool:
        """From (q, q) over two different states back to (q, q), on one text."""
        inside = {s for s in self._can_reach[start] if start in self._can_reach[s]}
        waiting: deque[tuple[int, int, bool]] = deque([(start, start, False)])
        seen = {(start, start, False)}
        while waiting and self._has_time():
            left, right, parted = waiting.popleft()
            for a, b in self._moves(left, right, inside=inside):
                now = parted or a != b
                if now and a == b == start:
                    return True
                if (a, b, now) not in seen:
                    seen.add((a, b, now))
                    waiting.append((a, b, now))
        return any(source in inside and target in inside for source, target in self._a.doubled)

    def _moves(self, left: int, right: int, *, inside: set[int]) -> Iterator[tuple[int, int]]:
        masks, follow = self._a.masks, self._a.follow
        for a in follow[left] & inside:
            for b in follow[right] & inside:
                self._steps += 1
                if masks[a] & masks[b]:
                    yield a, b

    def _stays_and_moves(self, p: int, q: int) -> bool:
        """From (p, p, q) to (p, q, q) on one text."""
        waiting: deque[tuple[int, int, int]] = deque([(p, p, q)])
        seen = {(p, p, q)}
        while waiting and self._has_time():
            for triple in self._triples(waiting.popleft(), p, q=q):
                if triple == (p, q, q):
                    return True
                if triple not in seen:
                    seen.add(triple)
                    waiting.append(triple)
        return False

    def _triples(self, at: tuple[int, int, int], p: int, *, q: int) -> Iterator[tuple[int, int, int]]:
        """Moves of three states on one character that can still come to their ends."""
        masks = self._a.masks
        firsts, seconds, thirds = (
            [s for s in self._a.follow[state] if s == end or end in self._can_reach[s]]
            for state, end in zip(at, (p, q, q), strict=True)
        )
        for a, b, c in itertools.product(firsts, seconds, thirds):
            self._steps += 1
            if masks[a] & masks[b] & masks[c]:
                yield a, b, c

    def _has_time(self) -> bool:
        return self._steps < _MAX_STEPS


_PRINTABLE = sum(1 << index for index, character in enumerate(ALPHABET) if character.isprintable())
