"""Which tactic a text puts a technique under by its name: `T1190 is a Persistence technique`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from casemate.knowledge import words
from casemate.knowledge.gate import wordings
from casemate.knowledge.gate.claims import Claim
from casemate.knowledge.gate.mentions import Mention

_REACH = 160
_KIND_REACH = 40
_KIND_WORD = r"(?:tactics?|sub-?techniques?|techniques?|phase|战术|阶段|(?:类)?(?:子)?(?:技术|手法))"
_KIND_AHEAD = re.compile(_KIND_WORD, re.IGNORECASE)
_TACTIC_WORD = re.compile(r"tactic|战术", re.IGNORECASE)
_MARKS = r"[\s“”‘’\"'*_`「」《》:：]*"
_NAME = r"[)）\]]?(?:['’]s)?\s*(?:[(（][^()（）\n]{1,100}[)）])?[\s,，*_`]*"
_VERB = (
    r"(?:(?:which|that|also|officially|it|technique|技术)\s*)*"
    rf"(?:(?P<copula>(?:is|was)\s+an?|(?:是|为|系)(?:一种|一个)?)|{wordings.BELONGS}|serves)"
    rf"{_MARKS}(?:(?:the|an?|MITRE|ATT&CK|tactics?|战术){_MARKS})*"
)
_KIND = rf"(?:{_MARKS}(?P<kind>{_KIND_WORD}))"


def tactic(text: str, mention: Mention, *, names: Iterable[str]) -> Claim | None:
    """The tactic that a text names as that of a technique; None if it names none outright."""
    patterns = _patterns(tuple(names))
    if match := patterns.inside.match(text, mention.end, mention.end + _REACH):
        return _claim(match)
    match = patterns.ahead.match(text, mention.end, mention.end + _REACH)
    if match and (match["kind"] or (not match["copula"] and _is_a_name(match["tactic"]))):
        return _claim(match)
    if claim := _in_one_clause(text, mention, named=patterns.named):
        return claim
    if not _KIND_AHEAD.search(text, max(0, mention.start - _KIND_REACH), mention.start):
        return None
    match = patterns.before.search(text, max(0, mention.start - _REACH), mention.start)
    return _claim(match) if match and _is_a_name(match["tactic"]) else None


@dataclass(frozen=True, slots=True)
class _Patterns:
    """Where a tactic's name may stand: ahead of the technique, in brackets, before it, or anywhere with its kind."""

    ahead: re.Pattern[str]
    inside: re.Pattern[str]
    before: re.Pattern[str]
    named: re.Pattern[str]


def _in_one_clause(text: str, mention: Mention, *, named: re.Pattern[str]) -> Claim | None:
    """What one plain clause puts the technique in: `T1496 … sits … in … the Discovery tactic`."""
    start = mention.end + (text[mention.end : mention.end + 1] in (")", "）"))
    if not _TACTIC_WORD.search(text, start, start + _REACH):
        return None
    match = named.search(text, start, start + _REACH)
    if match is None:
        return None
    between = text[start : match.start()]
    plain = not wordings.PARTS.search(between) and not wordings.DENIED.search(between)
    return _claim(match) if plain and (wordings.CONTAINED.search(between) or _IS_IN.search(between)) else None


_IS_IN = re.compile(r"\b(?:in|of|as)\b|是|为|在|于")


def _is_a_name(word: str) -> bool:
    """Many tactics are common words; a name has a capital, or is Chinese."""
    return word[0].isupper() or words.has_han(word)


def _claim(match: re.Match[str]) -> Claim:
    return Claim(match["tactic"], match.start("tactic"), match.end("tactic"), marked=True)


@lru_cache(8)
def _patterns(names: tuple[str, ...]) -> _Patterns:
    chosen = "|".join(re.escape(name).replace(r"\ ", r"[\s-]+") for name in sorted(names, key=len, reverse=True))
    one = rf"(?P<tactic>{chosen})(?![A-Za-z])"
    holds = r"(?:includes?|contains?|covers?|lists?|holds?|包含|包括|涵盖|收录|下属?的?|中的?|里的?|的)?"
    return _Patterns(
        re.compile(rf"{_NAME}{_VERB}{one}(?:{_KIND}|(?=[\s”\"*_`」》.,，。;；:：)）之下中里内]|\Z))", re.IGNORECASE),
        re.compile(
            rf"\s*[(（][^()（）\n]{{0,100}}?(?:[,，;；|/]\s*|(?:tactics?|战术)\s*[:：]?\s*){one}(?:\s*(?:tactic|战术))?\s*[)）]",
            re.IGNORECASE,
        ),
        re.compile(
            rf"(?<![A-Za-z]){one}{_KIND}(?:\s+(?:we|you|one|ATT&CK)\s+\w+)?\s*{holds}(?:\s*(?:技术|techniques?))?{_MARKS}[(（]?\s*\Z",
            re.IGNORECASE,
        ),
        re.compile(rf"(?<![A-Za-z]){one}{_MARKS}(?:这一|这个|该|一类)?(?:tactics?|战术)", re.IGNORECASE),
    )
