"""Text as search sees it: folded, split into words, Chinese as pairs of characters. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache

import snowballstemmer

_HAN = re.compile(r"[\u3400-\u9fff]+")
_WORD = re.compile(r"[a-z0-9_.#+]*[a-z0-9][a-z0-9_#+]*")
_STOP_WORDS = """
a an and any are as at be by can code could do does for from give given has have how i if in into is it its me
my no not of on only or our should so than that the their them then there this to us use used using user users
was we what when where which while who why will with without you your
"""
_PART = re.compile(r"[a-z0-9]+")
_STEMMER = snowballstemmer.stemmer("porter")
_STOP = frozenset(_STOP_WORDS.split())
_STOP_CHARACTERS = frozenset("的了是在和与及或被把就都也还很会能要有没这那我你他它们吗呢吧啊个一不")


@dataclass(frozen=True, slots=True)
class Match:
    """A term found in a folded text, between two offsets."""

    term: str
    start: int
    end: int


def fold(text: str) -> str:
    """Full-width to half-width, lower case, one space between words and none beside Chinese."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"(?<=[\u3400-\u9fff]) | (?=[\u3400-\u9fff])", "", " ".join(plain.split()))


def has_han(text: str) -> bool:
    """Whether a text holds Chinese characters."""
    return bool(_HAN.search(text))


def latin(text: str) -> list[str]:
    """The words of a text that are worth looking for, folded, in order."""
    return [word for word in _WORD.findall(fold(text)) if word not in _STOP and len(word) > 1]


def terms(text: str) -> list[str]:
    """What a text is indexed and looked for by: stems of words (Porter 1980), Chinese characters, and pairs of them."""
    parts = (part for word in latin(text) for part in _PART.findall(word))
    alone = (character for run in _HAN.findall(fold(text)) for character in run if character not in _STOP_CHARACTERS)
    return [*(stem(part) for part in parts if len(part) > 1 and part not in _STOP), *alone, *pairs(text)]


@lru_cache(1 << 16)
def stem(word: str) -> str:
    """The stem of an English word: `injected` and `injection` become `inject`."""
    return str(_STEMMER.stemWord(word))


def pairs(text: str) -> list[str]:
    """Every two neighbouring Chinese characters; Chinese has no spaces, so pairs stand in for words."""
    return [run[at : at + 2] for run in _HAN.findall(fold(text)) for at in range(len(run) - 1)]


def longest(folded: str, terms: Collection[str], *, limit: int) -> Iterator[Match]:
    """Terms in a folded text, longest first at each place, none inside another.

    Args:
        folded: the text, as `fold` gives it.
        terms: folded terms; a set or mapping.
        limit: length of the longest term.
    """
    at = 0
    while at < len(folded):
        match = longest_at(folded, at, terms=terms, limit=limit)
        if match:
            yield match
        at = match.end if match else at + 1


def longest_at(folded: str, at: int, *, terms: Collection[str], limit: int) -> Match | None:
    """The longest term that begins at this very place."""
    if not boundary(folded, at):
        return None
    for end in range(min(len(folded), at + limit), at, -1):
        term = folded[at:end]
        if term in terms and boundary(folded, end):
            return Match(term, at, end)
    return None


def boundary(text: str, at: int) -> bool:
    """Whether a word may begin or end here: not between two letters or digits of an alphabet."""
    return not (0 < at < len(text) and _joins(text[at - 1]) and _joins(text[at]))


def _joins(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")
