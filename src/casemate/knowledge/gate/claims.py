"""What a text calls an identifier: the name beside a mention, if there is one. Pure but for the names it is given."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from casemate.knowledge import words
from casemate.knowledge.gate.mentions import Mention

_REACH = 200
"""How far from a mention its name may end."""
_HAN_REACH = 60
"""The same where the text is not plain ASCII: no Chinese name is longer."""
_AFTER = re.compile(
    r"""[\s*_`"'“”]*
    (?P<mark>[(（\[【:：「《]|[-–—]{1,2}(?=[\s\u3400-\u9fff])|即|是指?|,?[ ]i\.e\.,?[ ]
        |(?:is|means|refers\ to|stands\ for)\s(?:the\s|an?\s)?|)
    [\s*_`"'“”]*(?:(?:also\ known\ as|aka|又称|也称|即|i\.e\.,?|名为|名称[:：]?)\s*)?""",
    re.VERBOSE,
)
_ASSERTS = re.compile(r"[a-z是即, ]")
_OPEN = re.compile(r"[(（\[【]\s*(?:(?:MITRE|OWASP|see|即|编号|对应)\s*(?:Top\s*10\s*)?[:：]?\s*)?\Z")
_TIED = re.compile(r"\s*(?:[:：]|\s[-–—]{1,2})\s*\Z")
_LIST_MARK = re.compile(r"^[\s>*_`#\"'“”+-]*(?:\d{1,3}[.)、]\s*)?[\s*_`\"'“”]*")
_ENDS = re.compile(
    r"""[\s*_`"'”’]*(?:\Z|[)）\]】」》|;；。.,，、:：?？!！<{}\n"”]|[-–—]+\s
    |(?:vulnerabilit|weakness|flaw|attack|issue|risk|defect|problem|bug|techni|tactic|sub-?techni|exist|occur|allow)\w*\b
    |(?:in|on|at|via|through|from|by|is|was|are|were|has|when|where|because|which|that|found|can)\b
    |漏洞|攻击|缺陷|弱点|风险|问题|类|的|在|存在|会|可|导致|造成|引起|技术|战术)""",
    re.VERBOSE | re.IGNORECASE,
)
_SUFFIX = re.compile(
    r"\s*(?:vulnerabilit(?:y|ies)|weakness(?:es)?|flaws?|attacks?|issues?|bugs?|techniques?|tactics?"
    r"|漏洞|攻击|缺陷|弱点|风险|问题|技术|战术)?[\s*_`\"'“”’]*\Z",
    re.IGNORECASE,
)
_JSON_NAME = re.compile(r'"\s*,\s*"name"\s*:\s*"(?P<name>[^"\\]{2,200})"')
_NAME_ENDS = re.compile(r"[\n)）\].;；,，。|\"“”]|\s[-–—]\s|$")


@dataclass(frozen=True, slots=True)
class Claim:
    """A name given to a mention: its words and their span.

    `marked` if a bracket, colon or dash ties the two, `field` if it stands in a name's own column or key, `title` if it
    only looks like a name, and `list_` if further words follow it in a list.
    """

    name: str
    start: int
    end: int
    marked: bool
    field: bool = False
    title: bool = False
    list_: bool = False


def known(text: str, mention: Mention, *, terms: Mapping[str, tuple[str, ...]]) -> Claim | None:
    """The longest known term that the text gives as the mention's name: behind it, or before it in brackets."""
    return _quoted(text, mention) or _behind(text, mention, terms=terms) or _before(text, mention, terms=terms)


def spoken(text: str, mention: Mention) -> Claim | None:
    """Words behind a mark that look like a title (`CWE-89: Broken Object Access`), known or not."""
    mark = _AFTER.match(text, mention.end)
    if not mark or not mark["mark"] or _ASSERTS.match(mark["mark"]):
        return None
    stop = _NAME_ENDS.search(text, mark.end(), mark.end() + _REACH)
    end = stop.start() if stop else min(len(text), mark.end() + _REACH)
    name = text[mark.end() : end].strip(" *_`'")
    if not _is_title(name):
        return None
    return Claim(name, mark.end(), mark.end() + len(name), marked=True, title=True)


def _quoted(text: str, mention: Mention) -> Claim | None:
    """The name in a piece of JSON that is quoted in running text."""
    if text[mention.end : mention.end + 1] != '"' or not (found := _JSON_NAME.match(text, mention.end)):
        return None
    return Claim(found["name"], found.start("name"), found.end("name"), marked=True, field=True)


def _behind(text: str, mention: Mention, *, terms: Mapping[str, tuple[str, ...]]) -> Claim | None:
    mark = _AFTER.match(text, mention.end)
    if not mark or mark.end() == mention.end:
        start, tie = mention.end, ""
    else:
        start, tie = mark.end(), mark["mark"]
    line = text[start : start + _REACH]
    line = line[: cut.start()] if (cut := _CUT.search(line)) else line
    if not line.isascii():
        line = line[:_HAN_REACH] if words.has_han(line[:_HAN_REACH]) else line
    folded, places = folded_with_places(line)
    for end in _word_ends(folded):
        if folded[:end] in terms:
            size = places[end - 1] + 1 if places else end
            following = _ENDS.match(line, size)
            if not following:
                return None
            return Claim(line[:size], start, start + size, bool(tie), list_=following.group().strip()[:1] in _LISTING)
    return None


def _before(text: str, mention: Mention, *, terms: Mapping[str, tuple[str, ...]]) -> Claim | None:
    opened = text[mention.start - 1 : mention.start].isspace() or text[mention.start - 1 : mention.start] in _OPENERS
    if not opened or mention.start == 0:
        return None
    from_ = max(0, mention.start - _REACH)
    window = text[from_ : mention.start]
    if tie := _OPEN.search(window):
        whole = False
    elif tie := _TIED.search(window):
        whole = True
    else:
        return None
    last = tie.start()
    if words.has_han(window[-_HAN_REACH:]):
        cut = max(0, len(window) - _HAN_REACH)
        from_, window, last = from_ + cut, window[cut:], last - cut
    first = max(window.rfind("\n", 0, last), window.rfind("|", 0, last)) + 1
    if whole and first == from_ == 0 and mention.start > _REACH:
        return None
    first += marks.end() if (marks := _LIST_MARK.match(window[first:last])) else 0
    suffix = _SUFFIX.search(window, first, last)
    stop = suffix.start() if suffix else last
    folded, places = folded_with_places(window[first:last].rstrip(_MARKS))
    bare = len(folded_with_places(window[first:stop])[0])
    for start in (0,) if whole else _word_starts(folded):
        end = next((end for end in (len(folded), bare) if folded[start:end] in terms), 0)
        if end > start:
            at = first + (places[start] if places else start)
            name = window[at : first + (places[end - 1] + 1 if places else end)]
            return Claim(name, from_ + at, from_ + at + len(name), marked=True)
    return None


_CUT = re.compile(r"[\n\t|]")
_MARKS = " \t*_`\"'“”’"
_OPENERS = frozenset("(（[【:：-–—")
_LISTING = frozenset(",，、;；/")


def folded_with_places(text: str) -> tuple[str, list[int]]:
    """A text as `words.fold` gives it, and for each character the place that it came from; none if none moved."""
    if text.isascii() and "  " not in text and not _WHITE.search(text):
        shorter = text.rstrip(" ")
        return (shorter.lower(), []) if not shorter.startswith(" ") else _moved(text)
    return _moved(text)


_WHITE = re.compile(r"[\t\n\r\x0b\x0c\x1c-\x1f]")


def _moved(text: str) -> tuple[str, list[int]]:
    characters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for folded in _folded(character):
            before = characters[-1] if characters else " "
            if folded == " " and (before == " " or _is_han(before)):
                continue
            if before == " " and characters and _is_han(folded):
                characters.pop()
                places.pop()
            characters.append(folded)
            places.append(place)
    if characters and characters[-1] == " ":
        characters.pop()
        places.pop()
    return "".join(characters), places


@lru_cache(8192)
def _folded(character: str) -> str:
    plain = unicodedata.normalize("NFKC", character).casefold()
    return "".join(" " if part.isspace() else part for part in plain)


def _is_han(character: str) -> bool:
    return "\u3400" <= character <= "\u9fff"


def _word_ends(folded: str) -> list[int]:
    """Where a word of a folded text may end, the last first."""
    return [match.start() for match in _BOUNDARY.finditer(folded, 1)][::-1]


def _word_starts(folded: str) -> list[int]:
    return [match.start() for match in _BOUNDARY.finditer(folded)]


_BOUNDARY = re.compile(r"(?<![A-Za-z0-9_])|(?![A-Za-z0-9_])")
"""As `words.boundary`: anywhere but between two letters or digits of an alphabet."""


def _is_title(name: str) -> bool:
    """Two to fourteen words, most of them capitalised."""
    parts = [word for word in re.findall(r"[A-Za-z][\w'-]*", name) if len(word) > 3]
    return 2 <= len(parts) <= 14 and sum(word[0].isupper() for word in parts) > 0.7 * len(parts)
