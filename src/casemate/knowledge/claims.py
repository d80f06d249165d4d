"""What a text calls an identifier: the name beside a mention, if there is one. Pure but for the names it is given."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from casemate.knowledge import words
from casemate.knowledge.mentions import Mention

_REACH = 200
"""How far from a mention its name may end."""
_AFTER = re.compile(r"[\s*_`\"'“”]*(?P<mark>[(（\[:：]|[-–—]{1,2}(?=[\s\u3400-\u9fff])|)[\s*_`\"'“”]*")
_BEFORE = re.compile(r"(?P<name>[^\n。.;；:：,，()（）|]{2,200}?)[\s*_`\"'“”]*[(（\[]\s*\Z")
_JSON_NAME = re.compile(r'\A"\s*,\s*"name"\s*:\s*"(?P<name>[^"\\]{2,200})"')
_NAME_ENDS = re.compile(r"[\n)）\].;；,，。|\"“”]|\s[-–—]\s|$")


@dataclass(frozen=True, slots=True)
class Claim:
    """A name given to a mention: its words and their span; `marked` if a bracket, colon or dash ties the two."""

    name: str
    start: int
    end: int
    marked: bool


def known(text: str, mention: Mention, *, terms: Mapping[str, tuple[str, ...]]) -> Claim | None:
    """The longest known term that the text gives as the mention's name: behind it, or before it in brackets."""
    return _json(text, mention) or _behind(text, mention, terms=terms) or _before(text, mention, terms=terms)


def spoken(text: str, mention: Mention) -> Claim | None:
    """Words behind a mark that look like a title (`CWE-89: Broken Object Access`), known or not."""
    mark = _AFTER.match(text, mention.end)
    if not mark or not mark["mark"]:
        return None
    stop = _NAME_ENDS.search(text, mark.end())
    end = min(stop.start() if stop else len(text), mark.end() + _REACH)
    name = text[mark.end() : end].strip(" *_`'")
    return Claim(name, mark.end(), mark.end() + len(name), marked=True) if _is_title(name) else None


def _json(text: str, mention: Mention) -> Claim | None:
    found = _JSON_NAME.match(text[mention.end : mention.end + _REACH * 2])
    if not found:
        return None
    start = mention.end + found.start("name")
    return Claim(found["name"], start, start + len(found["name"]), marked=True)


def _behind(text: str, mention: Mention, *, terms: Mapping[str, tuple[str, ...]]) -> Claim | None:
    mark = _AFTER.match(text, mention.end)
    if not mark or mark.end() == mention.end:
        start, marked = mention.end, False
    else:
        start, marked = mark.end(), bool(mark["mark"])
    line = text[start : start + _REACH].split("\n", 1)[0]
    found = words.longest_at(words.fold(line), 0, terms=terms, limit=_REACH)
    size = _unfolded(line, found.term) if found else 0
    return Claim(line[:size], start, start + size, marked) if size else None


def _before(text: str, mention: Mention, *, terms: Mapping[str, tuple[str, ...]]) -> Claim | None:
    from_ = max(0, mention.start - _REACH)
    found = _BEFORE.search(text[from_ : mention.start])
    if not found:
        return None
    first, last = from_ + found.start("name"), from_ + len(found.string[: found.end("name")])
    for start in range(first, last - 1):
        if words.boundary(text, start) and words.fold(text[start:last]) in terms:
            return Claim(text[start:last], start, last, marked=True)
    return None


def _unfolded(line: str, term: str) -> int:
    """How much of a line folds to the term that its folded form begins with; 0 if the term ends inside a character."""
    return next((size for size in range(1, len(line) + 1) if words.fold(line[:size]) == term), 0)


def _is_title(name: str) -> bool:
    """Two to fourteen words, most of them capitalised."""
    parts = [word for word in re.findall(r"[A-Za-z][\w'-]*", name) if len(word) > 3]
    return 2 <= len(parts) <= 14 and sum(word[0].isupper() for word in parts) > 0.7 * len(parts)
