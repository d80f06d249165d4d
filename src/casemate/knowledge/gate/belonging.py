"""Which tactic a text puts a technique under by its name: `T1190 is a Persistence technique`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from casemate.knowledge import words
from casemate.knowledge.gate.claims import Claim
from casemate.knowledge.gate.mentions import Mention

_REACH = 160
_KIND_REACH = 24
_KIND_AHEAD = re.compile(r"tactic|techniq|phase|战术|阶段|技术", re.IGNORECASE)
_NAME = r"[)）\]]?(?:['’]s)?\s*(?:[(（][^()（）\n]{1,100}[)）])?[\s,，*_`]*"
_VERB = (
    r"(?:(?:which|that|also|officially|it|technique|技术)\s*)*"
    r"(?:(?P<copula>is\s+an?|(?:是|为)(?:一种|一个)?)|belongs?\s+to|falls?\s+(?:under|into|within)|is\s+(?:part\s+of|under|in|listed\s+under"
    r"|classified\s+(?:as|under)|categori[sz]ed\s+(?:as|under))|under|serves|(?:归?属于|归于|归入|归类为|归类到|隶属于|被归为))"
    r"[\s“\"*_`「《:：]*(?:(?:the|an?|MITRE|ATT&CK|tactics?|战术)[\s“\"*_`「《:：]*)*"
)
_KIND = r"(?:[\s”\"*_`」》]*(?P<kind>tactics?|sub-?techniques?|techniques?|phase|战术|阶段|(?:类)?(?:子)?技术))"


def tactic(text: str, mention: Mention, *, names: Iterable[str]) -> Claim | None:
    """The tactic that a text names as that of a technique; None if it names none outright."""
    ahead, inside, before = _patterns(tuple(names))
    if match := inside.match(text, mention.end, mention.end + _REACH):
        return _claim(match)
    match = ahead.match(text, mention.end, mention.end + _REACH)
    if match and (match["kind"] or not match["copula"]) and (match["kind"] or _is_a_name(match["tactic"])):
        return _claim(match)
    if not _KIND_AHEAD.search(text, max(0, mention.start - _KIND_REACH), mention.start):
        return None
    match = before.search(text, max(0, mention.start - _REACH), mention.start)
    return _claim(match) if match and _is_a_name(match["tactic"]) else None


def _is_a_name(word: str) -> bool:
    """Many tactics are common words; a name has a capital, or is Chinese."""
    return word[0].isupper() or words.has_han(word)


def _claim(match: re.Match[str]) -> Claim:
    return Claim(match["tactic"], match.start("tactic"), match.end("tactic"), marked=True)


@lru_cache(8)
def _patterns(names: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    chosen = "|".join(re.escape(name).replace(r"\ ", r"\s+") for name in sorted(names, key=len, reverse=True))
    one = rf"(?P<tactic>{chosen})(?![A-Za-z])"
    return (
        re.compile(rf"{_NAME}{_VERB}{one}{_KIND}?(?=[\s”\"*_`」》.,，。;；:：)）]|\Z)", re.IGNORECASE),
        re.compile(
            rf"\s*[(（][^()（）\n]{{0,100}}?(?:[,，;；|]\s*|(?:tactics?|战术)\s*[:：]?\s*){one}\s*[)）]", re.IGNORECASE
        ),
        re.compile(rf"(?<![A-Za-z]){one}{_KIND}[\s:：“\"*_`]*[(（]?\s*\Z", re.IGNORECASE),
    )
