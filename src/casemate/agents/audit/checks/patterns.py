"""What a regular expression lets through. Pure."""

from __future__ import annotations

import functools
import re
import warnings
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
    parsed = parsed_form(pattern)
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


def parsed_form(pattern: str) -> Any | None:
    """A pattern as the library's own parser reads it; None where it does not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd patterns of audited code are not ours to warn of
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
