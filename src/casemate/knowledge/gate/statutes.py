"""Finds clauses of laws and standards in running text: GDPR, HIPAA, MLPS 2.0, OWASP ASVS, NIST SP 800-53. Pure.

A clause is a number that means nothing without its law, so each pattern is anchored at the law's name, in English or
Chinese; further clauses may follow it in a list.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator

Found = tuple[str, int, int]
"""A canonical id and its span."""

ASVS = "5.0.0"
"""The edition of ASVS whose requirements are `ASVS V1.2.4`; those of others carry their edition in the id."""


def find(text: str) -> Iterator[Found]:
    """Every clause that a text names, law by law."""
    for words, finder in _FINDERS:
        if any(word in text for word in words):
            yield from finder(text)


_POINTS = r"(?P<points>(?:\s?[(（](?:[A-Za-z]|\d{1,2}|[ivxIVX]{1,5})[)）])*)"
_JOINT = r"\s{0,4}(?:,|，|;|；|、|/|&|\band\b|\bor\b|和|与|及|以及|或)\s{0,4}"

_GDPR_ARTICLE = rf"(?P<article>\d{{1,3}})(?!\d|\.\d){_POINTS}(?:,?\s*(?:point|lit\.?)\s*[(（](?P<point>[a-z])[)）])?"
_GDPR_WORD = r"[Aa]rt(?:icles?|s?\b\.?|s?\.)\s*"
_GDPR_ZH = (
    r"第\s*(?P<zh>[0-9０-９]{1,3}|[一二三四五六七八九十百]{1,5})\s*条"
    r"(?:\s*(?:之)?\s*第?\s*[(（]?(?P<para>[0-9]{1,2}|[一二三四五六七八九十]{1,3})[)）]?\s*款)?"
    r"(?:\s*(?:之)?\s*第?\s*[(（]?(?P<letter>[a-z])[)）]?\s*(?:项|点|目))?" + _POINTS.replace("points", "tail")
)
_GDPR_NAME = r"(?:GDPR|Regulation\s*\(EU\)\s*2016/679|《?(?:欧盟)?(?:通用|一般)数据保护条例》?)"
_GDPR = re.compile(
    rf"(?:(?P<law>{_GDPR_NAME})(?:'s|’s|[\s,:：(（的—–-]){{0,3}}|(?P<joint>{_JOINT})|(?=[Aa]rt|第))"
    rf"(?P<clause>{_GDPR_WORD}{_GDPR_ARTICLE}|{_GDPR_ZH})(?P<of>\s*(?:of\s+)?(?:the\s+)?[(（]?{_GDPR_NAME}(?!\s*(?:[Aa]rt|第)))?"
)
_GDPR_NEXT = re.compile(
    rf"{_JOINT}(?:{_GDPR_WORD})?(?P<article>\d{{1,2}}){_POINTS}(?:,?\s*(?:point|lit\.?)\s*[(（](?P<point>[a-z])[)）])?"
    r"(?![\d%\w]|\.\d|\s*(?:of|days?|hours?|weeks?|months?|years?|times?|other|more)\b)"
)
_GDPR_PAGE = re.compile(r"gdpr-info\.eu/art-(\d{1,2})-gdpr/?")

_HIPAA = re.compile(
    rf"(?:HIPAA[^\d\n.。;；]{{0,24}}?|45\s*C\.?\s?F\.?\s?R\.?[^\d\n.。;；]{{0,8}}|§{{1,2}}\s*|(?P<bare>(?<![\d.])(?=164\.3)))"
    rf"(?P<section>16[024]\.\d{{3}})(?!\d)(?:条)?{_POINTS}"
)
_MLPS = re.compile(
    r"""(?:GB\s?/?\s?T\s?22239(?:\s*[-—–]\s*(?:2019|2008))?|MLPS|等保|等级保护)
    (?:\s*2\.0)?(?:[^\d\n。;；]|[Ll]evel[\s-]?\d|L\d|第?\d级){0,24}?
    (?P<clause>(?P<number>\d{1,2}(?:\.\d{1,2}){2,3})(?![\d]|\.\d)(?:条|款)?
    (?:\s?第?[(（]?(?P<item>[a-z])(?:\s?[)）](?:\s?项)?|(?=项)))?)""",
    re.VERBOSE,
)
_MLPS_NEXT = re.compile(
    rf"{_JOINT}(?P<clause>(?P<number>\d{{1,2}}(?:\.\d{{1,2}}){{2,3}})(?![\d]|\.\d)(?:\s?[(（]?(?P<item>[a-z])\s?[)）])?)"
)
_ASVS = re.compile(
    r"""ASVS(?:[\s:：\-–(（]{0,4}[vV]?(?P<edition>[1-5]\.\d(?:\.\d)?)(?![\d.]))?[)）]?[\s:：\-–,，]{0,4}(?:要求|requirement)?\s{0,4}
    (?P<clause>[vV](?P<marked>\d{1,2}(?:\.\d{1,3}){0,2})|(?P<plain>\d{1,2}\.\d{1,3}\.\d{1,3}))(?!\d|\.\d)""",
    re.VERBOSE,
)
_FAMILIES = "AC|AT|AU|CA|CM|CP|IA|IR|MA|MP|PE|PL|PM|PS|PT|RA|SA|SC|SI|SR"
_NIST = re.compile(rf"(?<![A-Za-z0-9.\-])(?P<family>{_FAMILIES})-0?(?P<number>\d{{1,2}})(?![\d\w-])"
                   r"(?:\s?[(（]0?(?P<step>\d{1,2})[)）])?")  # fmt: skip
_NIST_NAME = re.compile(r"NIST|800-53")
_STOP = re.compile(r"(?<!\b[Rr]ev)(?<!\b[Nn]o)(?<!\bcf)(?<!\be\.g)[.!?](?=\s|$)|[。！？\n]")
_FARTHEST = 300


def _gdpr(text: str) -> Iterator[Found]:
    follows = -1  # where a clause of the law has just ended: a list of articles may go on there
    for match in _GDPR.finditer(text):
        if not (match["law"] or match["of"] or (match["joint"] and match.start() == follows)):
            continue
        start, end = match.start("law" if match["law"] else "clause"), match.end()
        end = match.end() if match["of"] else match.end("clause")
        yield _gdpr_id(match), start, end
        follows = end
        while following := _GDPR_NEXT.match(text, follows):
            follows = following.end()
            points = following["points"] + (f"({following['point']})" if following["point"] else "")
            yield _article(following["article"], points), following.start("article"), follows
    for match in _GDPR_PAGE.finditer(text):
        yield f"GDPR Art. {match[1]}", match.start(), match.end()


def _gdpr_id(match: re.Match[str]) -> str:
    if match["zh"]:
        points = "".join(f"({part})" for part in (_number(match["para"] or ""), match["letter"] or "") if part)
        return _article(_number(match["zh"]), points + (match["tail"] or ""))
    return _article(match["article"], (match["points"] or "") + (f"({match['point']})" if match["point"] else ""))


def _article(number: str, points: str) -> str:
    return f"GDPR Art. {int(number)}" + "".join(f"({part})" for part in re.findall(r"\w+", points))


def _number(text: str) -> str:
    """A Chinese or full-width numeral below 200 in digits."""
    if not text or text.isdecimal():
        return str(int(text)) if text else ""
    hundreds, _, rest = text.rpartition("百")
    tens, ten, ones = rest.rpartition("十")
    digits = {digit: value for value, digit in enumerate("零一二三四五六七八九")}
    value = 100 * digits.get(hundreds, 0) + 10 * (digits.get(tens, 1) if ten else 0)
    return str(value + digits.get(ones, 0))


def _hipaa(text: str) -> Iterator[Found]:
    named = "HIPAA" in text
    for match in _HIPAA.finditer(text):
        if match["bare"] is not None and not (named and match["points"]):
            continue
        yield f"HIPAA {match['section']}" + _levels(match["points"]), match.start("section"), match.end()


def _levels(points: str) -> str:
    """`(A)(1)(ii)(d)` as the law writes it: the fourth level in capitals, the others in small letters."""
    parts = re.findall(r"\w+", points)
    return "".join(f"({part.upper() if depth == 3 else part.lower()})" for depth, part in enumerate(parts))


def _mlps(text: str) -> Iterator[Found]:
    for match in _MLPS.finditer(text):
        yield _mlps_id(match), match.start("clause"), match.end("clause")
        at = match.end("clause")
        while following := _MLPS_NEXT.match(text, at):
            at = following.end()
            yield _mlps_id(following), following.start("clause"), at


def _mlps_id(match: re.Match[str]) -> str:
    return f"MLPS {match['number']}" + (f" {match['item']})" if match["item"] else "")


def _asvs(text: str) -> Iterator[Found]:
    for match in _ASVS.finditer(text):
        number = match["marked"] or match["plain"]
        if match["plain"] and not match["edition"] and number in _ASVS_EDITIONS:
            continue
        other = match["edition"] and match["edition"] not in (ASVS, "5.0")
        chapter = f"v{match['edition']}-" if other else "V"
        yield f"ASVS {chapter}{number}", match.start("clause"), match.end()


_ASVS_EDITIONS = frozenset({"2.0.0", "3.0.0", "3.0.1", "3.1.0", "4.0.0", "4.0.1", "4.0.2", "4.0.3", "5.0.0"})


def _nist(text: str) -> Iterator[Found]:
    names = [name.start() for name in _NIST_NAME.finditer(text)]
    for match in _NIST.finditer(text):
        at = bisect_left(names, match.start() - _FARTHEST)
        if at == len(names) or names[at] > match.end() + _FARTHEST:
            continue
        before = text[max(0, match.start() - _FARTHEST) : match.start()]
        after = text[match.end() : match.end() + _FARTHEST]
        stops = list(_STOP.finditer(before))
        ends = _STOP.search(after)
        sentence = before[stops[-1].end() if stops else 0 :] + " " + after[: ends.start() if ends else None]
        if _NIST_NAME.search(sentence):
            step = f"({int(match['step'])})" if match["step"] else ""
            yield f"NIST {match['family']}-{int(match['number'])}{step}", match.start(), match.end()


_FINDERS: tuple[tuple[tuple[str, ...], Callable[[str], Iterator[Found]]], ...] = (
    (("GDPR", "gdpr-info", "2016/679", "数据保护条例"), _gdpr),
    (("HIPAA", "CFR", "C.F.R", "§"), _hipaa),
    (("22239", "MLPS", "等保", "等级保护"), _mlps),
    (("ASVS",), _asvs),
    (("NIST", "800-53"), _nist),
)
