"""What a regular expression lets through, and whether it can take exponential time. Pure.

Source for the second: overlapping repetition makes a backtracking matcher try every split, CWE-1333.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from re import _constants as op  # type: ignore[attr-defined]  # the parser has had no public name since 3.11
from re import _parser as parser  # type: ignore[attr-defined]  # as in the line above
from typing import Any

_EXAMPLES: Mapping[str, str] = {
    "sql": "'\"; ",
    "command": "; |&$`\n",
    "code": "()[;",
    "template": "{}%",
    "html": "<>\"'",
    "path": "/\\",
    "header": "\r\n",
    "log": "\r\n",
    "ldap": "*()",
    "xpath": "'\"[",
    "nosql": "{$",
    "regex": "*+(",
    "redirect": "/:",
    "ssrf": "/:.",
    "upload": "/.",
    "object": "\x80\n (",
    "xml": "<&",
    "mass": "a_",
    "session": "a",
}
"""For each kind of sink, characters that an attack needs one of."""
_SAFE_HOST = re.compile(r"^\^?https?:(?:\\?/){2}(?:[\w-]|\\\.)+(?::\d+)?(?:\\?/|\$)")


@functools.lru_cache(maxsize=512)
def harmless_kinds(pattern: str, *, whole: bool) -> frozenset[str]:
    """Kinds of sink for which text that matches is harmless.

    Args:
        pattern: a regular expression.
        whole: whether the text matches as a whole (`fullmatch`); `match` only counts with an end anchor.
    """
    parsed = _parsed(pattern)
    if parsed is None:
        return frozenset()
    kinds = set()
    if _SAFE_HOST.match(pattern):
        kinds |= {"redirect", "ssrf"}
    if not whole and not _ends(parsed):
        return frozenset(kinds)
    for kind, needed in _EXAMPLES.items():
        if not any(_allows(parsed, character) for character in needed):
            kinds.add(kind)
    return frozenset(kinds)


@functools.lru_cache(maxsize=512)
def can_explode(pattern: str) -> bool:
    """Whether matching can take exponential time: a repetition whose body can match the same text in several ways."""
    parsed = _parsed(pattern)
    return parsed is not None and any(
        _ambiguous(body) for body, (low, high) in _repeats(parsed) if high is op.MAXREPEAT or high - low > 20
    )


def _parsed(pattern: str) -> Any | None:
    try:
        return parser.parse(pattern)
    except (re.error, OverflowError, RecursionError):
        return None


def _children(code: object, argument: Any) -> Iterable[Any]:
    if code in {op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT}:
        return (argument[2],)
    if code is op.SUBPATTERN:
        return (argument[3],)
    if code is op.BRANCH:
        return tuple(argument[1])
    if code is op.ATOMIC_GROUP:
        return (argument,)
    return ()


def _repeats(parsed: Any) -> Iterable[tuple[Any, tuple[int, int]]]:
    for code, argument in parsed:
        if code in {op.MAX_REPEAT, op.MIN_REPEAT}:
            yield argument[2], (argument[0], argument[1])
        for child in _children(code, argument):
            yield from _repeats(child)


def _ambiguous(body: Any) -> bool:
    """A body that is itself only a repetition, or a choice between ways that begin alike."""
    items = list(body)
    while len(items) == 1 and items[0][0] is op.SUBPATTERN:
        items = list(items[0][1][3])
    if len(items) == 1 and items[0][0] is op.BRANCH:
        firsts = [_first(list(way)) for way in items[0][1][1]]
        return any(_overlap(a, b) for index, a in enumerate(firsts) for b in firsts[index + 1 :])
    if len(items) > 1 and _can_be_empty(items[-1]) and _first(items[-1:]) & _first(items):
        return True
    variable = [item for item in items if item[0] in {op.MAX_REPEAT, op.MIN_REPEAT} and item[1][1] is op.MAXREPEAT]
    fixed = [item for item in items if item not in variable and not _optional(item)]
    if not variable:
        return False
    repeated = [_first(list(item[1][2])) for item in variable]
    return not fixed or (
        len(items) == len(variable) + len(fixed)
        and all(any(_overlap(_first([item]), body_set) for body_set in repeated) for item in fixed)
    )


def _optional(item: Any) -> bool:
    return item[0] in {op.MAX_REPEAT, op.MIN_REPEAT} and item[1][0] == 0


def _can_be_empty(item: Any) -> bool:
    """Whether an item may match nothing; the parser writes `a|aa` as an `a` and a choice of nothing or `a`."""
    return _optional(item) or (item[0] is op.BRANCH and any(not list(way) for way in item[1][1]))


def _first(items: list[Any]) -> frozenset[str]:
    """Which of a few telling characters a sequence can begin with."""
    for item in items:
        if item[0] is not op.AT:
            return frozenset(c for c in "aZ5_ -.@/,;:<'\"" if _allows([item], c))
    return frozenset()


def _overlap(first: frozenset[str], second: frozenset[str]) -> bool:
    return bool(first & second)


def _ends(parsed: Any) -> bool:
    items = list(parsed)
    return bool(items) and items[-1][0] is op.AT and items[-1][1] in {op.AT_END, op.AT_END_STRING}


def _allows(parsed: Any, character: str) -> bool:
    """Whether the character can occur anywhere in a text that the expression matches."""
    return any(_item_allows(item, character) for item in parsed)


def _item_allows(item: tuple[object, Any], character: str) -> bool:
    code, argument = item
    if code is op.ANY:
        return character != "\n"
    if code is op.LITERAL:
        return bool(argument == ord(character))
    if code is op.NOT_LITERAL:
        return bool(argument != ord(character))
    if code is op.IN:
        return _set_allows(argument, character)
    return any(_allows(child, character) for child in _children(code, argument))


def _set_allows(members: Any, character: str) -> bool:
    inside = False
    negated = False
    for code, argument in members:
        if code is op.NEGATE:
            negated = True
        elif code is op.LITERAL:
            inside |= argument == ord(character)
        elif code is op.RANGE:
            inside |= argument[0] <= ord(character) <= argument[1]
        elif code is op.CATEGORY:
            inside |= _in_category(argument, character)
    return inside != negated


def _in_category(category: object, character: str) -> bool:
    tests = {
        op.CATEGORY_DIGIT: character.isdigit(),
        op.CATEGORY_NOT_DIGIT: not character.isdigit(),
        op.CATEGORY_SPACE: character.isspace(),
        op.CATEGORY_NOT_SPACE: not character.isspace(),
        op.CATEGORY_WORD: character.isalnum() or character == "_",
        op.CATEGORY_NOT_WORD: not (character.isalnum() or character == "_"),
    }
    return tests.get(category, True)
