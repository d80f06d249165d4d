"""Finds what looks like an identifier or a clause in running text, however it is spelt. Pure.

Each catalogue has one pattern that begins with a plain letter, so that text without its identifiers costs next to
nothing. Where a spelling is common elsewhere, a word of its catalogue must stand near.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from casemate.knowledge.gate import statutes

NO_YEAR = "OWASP "
"""What the id of a Top 10 class begins with if the text names no year."""
_NEAR = 120
"""How far away the word may stand that an ambiguous spelling needs."""


@dataclass(frozen=True, slots=True)
class Mention:
    """An identifier at a place: canonical `id`, and the span of the text that names it."""

    id: str
    start: int
    end: int


def find(text: str) -> tuple[Mention, ...]:
    """Every mention in reading order, none inside another; of two that overlap, the earlier, then the longer.

    CWE, CAPEC, CVE, ATT&CK, OWASP Top 10, D3FEND and Sigma ids, addresses of their pages, and clauses of GDPR, HIPAA,
    MLPS, ASVS and NIST SP 800-53.
    """
    found = [*_identifiers(text), *(Mention(*found) for found in statutes.find(text))]
    found.sort(key=lambda mention: (mention.start, -mention.end))
    kept: list[Mention] = []
    for mention in found:
        if not kept or mention.start >= kept[-1].end:
            kept.append(mention)
    return tuple(kept)


def canonical(id_: str) -> str:
    """The canonical spelling of an identifier that a person typed; the text itself where it is none."""
    typed = id_.strip()
    if _ANY_CASE.fullmatch(typed):
        return typed.upper()
    found = find(typed)
    return found[0].id if len(found) == 1 and len(typed) - (found[0].end - found[0].start) <= _SPARE else typed


_SPARE = len("OWASP ")
"""How many typed characters a mention may leave out."""
_ANY_CASE = re.compile(r"(?:ta?\d{4}(?:\.\d{3})?|m1\d{3}|a\d\d:20\d\d|d3-[a-z]+)", re.IGNORECASE)

_DASH = "[-－–‑‐−]"
_CWE = re.compile(
    r"""
    [Cc](?<![A-Za-z0-9].)(?:[Ww][Ee]|(?P<capec>[Aa][Pp][Ee][Cc]))
    (?:[\s_-]?(?:[Ii][Dd]s?|编号)\b)?
    (?:[\s:：=\#]{0,2}|[-_－–‑‐−])(?<!\w(?=(?:19|20)\d\d\s))0{0,6}(?P<number>[1-9]\d{0,8})
    (?!\d|\.\d|-\d|\s+(?:findings?|issues|entries|results|weaknesses|records|patterns|条|个|项|种|类))
    """,
    re.VERBOSE,
)
_YEAR_OF_LIST = re.compile(r"[Cc][A-Za-z]+\s(?:19|20)\d\d")
"""`the CWE 2024 list` names no weakness."""
_CVE = re.compile(rf"[Cc](?<![A-Za-z0-9].)[Vv][Ee]{_DASH}\d{{1,6}}{_DASH}\d{{1,19}}(?![\dA-Za-z])")
_TECHNIQUE = re.compile(r"[Tt](?<![A-Za-z0-9].)(?P<four>[0-9]\d{3})(?:\.\d{1,5}|/\d{3})?(?![\dA-Za-z])")
_OTHER_ATTACK = re.compile(r"(?:TA|M(?=0[89]|1))(?<![A-Za-z0-9]TA)(?<![A-Za-z0-9]M)\d{4}(?![\dA-Za-z])")
_RISK = re.compile(r"A(?<![A-Za-z0-9]A)(?P<risk>\d{1,2})[:：_\-](?P<year>20\d\d)(?![\dA-Za-z]|-\d)")
_RISK_AFTER_NAME = re.compile(
    r"""
    OWASP(?:[\s\-]{0,3}[Tt][Oo][Pp][\s\-]{0,3}(?:10|[Tt]en|TEN))?[\s:：\-–—(（,，]{0,4}(?P<before>20\d\d)?[)）]?[\s:：\-–—,，\#]{0,4}
    (?P<id>A(?P<risk>\d{1,2}))(?![\dA-Za-z_]|[:：\-]\d)(?:\s{0,3}[(（]?(?P<after>20(?:0[3-9]|1\d|2\d))(?!\d)[)）]?)?
    """,
    re.VERBOSE,
)
_COUNTERMEASURE = re.compile(r"D3-(?<![A-Za-z0-9]D3-)[A-Z]{2,8}(?![A-Za-z0-9-])")
_UUID = re.compile(r"(?<![0-9A-Fa-f-])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![0-9A-Fa-f-])")
_PAGE = re.compile(
    r"""
    cwe\.mitre\.org/data/definitions/(?P<cwe>\d{1,5})(?:\.html)?
  | capec\.mitre\.org/data/definitions/(?P<capec>\d{1,5})(?:\.html)?
  | attack\.mitre\.org/(?:techniques|tactics|mitigations)/(?P<attack>(?:TA?|M)\d{4}(?:/\d{3})?)
    """,
    re.VERBOSE,
)
_ATTACK_WORD = re.compile(r"ATT&CK|MITRE|technique|技术", re.IGNORECASE)
_SIGMA_WORD = re.compile(r"sigma", re.IGNORECASE)
_OWASP_WORD = re.compile(r"OWASP|Top[ -]?(?:10|Ten)", re.IGNORECASE)
_EDITIONS = frozenset({"2003", "2004", "2007", "2010", "2013", "2017", "2021", "2025"})


def _identifiers(text: str) -> Iterator[Mention]:
    if "mitre.org/" in text:
        yield from _pages(text)
    for match in _CWE.finditer(text):
        if not _YEAR_OF_LIST.fullmatch(match.group()):
            list_ = "CAPEC" if match["capec"] else "CWE"
            yield Mention(f"{list_}-{match['number']}", match.start(), match.end())
    for match in _CVE.finditer(text):
        yield Mention(re.sub(_DASH, "-", match.group().upper()), match.start(), match.end())
    yield from _attack(text)
    yield from _risks(text)
    for match in _COUNTERMEASURE.finditer(text):
        yield Mention(match.group(), match.start(), match.end())
    for match in _UUID.finditer(text):
        if _stands_near(_SIGMA_WORD, text, match=match):
            yield Mention(f"Sigma {match.group().lower()}", match.start(), match.end())


def _attack(text: str) -> Iterator[Mention]:
    for match in _TECHNIQUE.finditer(text):
        if match["four"][0] in "01" or _stands_near(_ATTACK_WORD, text, match=match):
            yield Mention(match.group().upper().replace("/", "."), match.start(), match.end())
    for match in _OTHER_ATTACK.finditer(text):
        yield Mention(match.group(), match.start(), match.end())


def _pages(text: str) -> Iterator[Mention]:
    for match in _PAGE.finditer(text):
        if match["attack"]:
            id_ = match["attack"].replace("/", ".")
        else:
            id_ = f"CWE-{int(match['cwe'])}" if match["cwe"] else f"CAPEC-{int(match['capec'])}"
        yield Mention(id_, match.start(), match.end())


def _risks(text: str) -> Iterator[Mention]:
    for match in _RISK.finditer(text):
        if match["year"] in _EDITIONS or _stands_near(_OWASP_WORD, text, match=match):
            yield Mention(f"A{int(match['risk']):02}:{match['year']}", match.start(), match.end())
    if "OWASP" in text:
        for match in _RISK_AFTER_NAME.finditer(text):
            year = match["before"] or match["after"]
            name = f"A{int(match['risk']):02}"
            yield Mention(f"{name}:{year}" if year else NO_YEAR + name, match.start("id"), match.end("id"))


def _stands_near(word: re.Pattern[str], text: str, *, match: re.Match[str]) -> bool:
    return bool(word.search(text, max(0, match.start() - _NEAR), match.end() + _NEAR // 2))
