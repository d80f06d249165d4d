"""Which characters a piece of a regular expression reads, over a small telling alphabet. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from re import _constants as op  # type: ignore[attr-defined]  # the parser has had no public name since 3.11
from typing import Any

ALPHABET = "abczABCZ0189_ \t\n\r.-+*/\\,;:'\"`~!?@#$%^&=|<>()[]{}é中"
"""Letters, digits, every mark of ASCII, blanks, and two letters from beyond."""
_ALL = (1 << len(ALPHABET)) - 1
_NEWLINE = 1 << ALPHABET.index("\n")


def mask_of(code: Any, argument: Any) -> int | None:
    """The characters that an item reads, a bit for each; None for an item that reads nothing.

    A literal outside the alphabet counts as the letter or mark of its class that stands for it.
    """
    if code is op.ANY:
        return _ALL & ~_NEWLINE
    if code is op.LITERAL:
        return _bit(argument)
    if code is op.NOT_LITERAL:
        return _ALL & ~_bit(argument)
    if code is op.IN:
        return _of_set(argument)
    if code is op.GROUPREF:
        return 0
    return None


def _bit(codepoint: int) -> int:
    character = chr(codepoint)
    place = ALPHABET.find(character)
    if place < 0:
        stand_in = _stand_in(character)
        place = ALPHABET.index(stand_in)
    return 1 << place


def _stand_in(character: str) -> str:
    """Unlike letters must not stand for one another, so those between `d` and `y` share only with themselves."""
    if character.isascii() and character.isalpha():
        order = "abcz" if character.islower() else "ABCZ"
        return order[ord(character) % 4]
    if character.isdigit():
        return "0189"[ord(character) % 4]
    if character.isspace():
        return "\t"
    return "中" if character > "\u2e80" else "é"


def _of_set(members: Any) -> int:
    mask, negated = 0, False
    for code, argument in members:
        if code is op.NEGATE:
            negated = True
        elif code is op.LITERAL:
            mask |= _bit(argument)
        elif code is op.RANGE:
            mask |= _of_range(*argument)
        elif code is op.CATEGORY:
            mask |= _of_category(argument)
    return _ALL & ~mask if negated else mask


def _of_range(low: int, high: int) -> int:
    inside = sum(1 << index for index, character in enumerate(ALPHABET) if low <= ord(character) <= high)
    return inside or _bit(low)


def _of_category(category: Any) -> int:
    tests: Mapping[Any, Callable[[str], bool]] = {
        op.CATEGORY_DIGIT: str.isdigit,
        op.CATEGORY_SPACE: str.isspace,
        op.CATEGORY_WORD: lambda c: c.isalnum() or c == "_",
    }
    opposite = {
        op.CATEGORY_NOT_DIGIT: op.CATEGORY_DIGIT,
        op.CATEGORY_NOT_SPACE: op.CATEGORY_SPACE,
        op.CATEGORY_NOT_WORD: op.CATEGORY_WORD,
    }
    test = tests.get(opposite.get(category, category))
    mask = 0
    for index, character in enumerate(ALPHABET):
        mask |= (1 << index) * (test is None or test(character))
    return _ALL & ~mask if category in opposite else mask
