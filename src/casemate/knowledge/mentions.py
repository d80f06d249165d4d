"""Finds what looks like an identifier in running text, JSON or a report, however it is spelt. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mention:
    """An identifier at a place: canonical `id`, and the span of the text that names it."""

    id: str
    start: int
    end: int


def find(text: str) -> tuple[Mention, ...]:
    """Every mention in reading order: CWE, CAPEC, ATT&CK, OWASP Top 10 and CVE ids, and addresses of their pages."""
    return tuple(Mention(_canonical(match), match.start(), match.end()) for match in _ID.finditer(text))


def canonical(id_: str) -> str:
    """The canonical spelling of an identifier that a person typed; the text itself where it is none."""
    match = _ID.fullmatch(id_.strip())
    return _canonical(match) if match else _ID_ANY_CASE.sub(lambda found: found[0].upper(), id_.strip())


_ID = re.compile(
    r"""
    cwe\.mitre\.org/data/definitions/(?P<cwe_page>\d{1,5})(?:\.html)?
  | attack\.mitre\.org/(?:techniques|tactics|mitigations)/(?P<attack_page>(?:TA?|M)\d{4}(?:/\d{3})?)
  | (?<![A-Za-z0-9])(?P<list>(?i:CWE|CAPEC))[\s\-_:：－–]{0,2}0{0,4}(?P<number>[1-9]\d{0,4})(?![\d]|\.\d|-\d)
  | (?<![A-Za-z0-9])(?P<cve>(?i:CVE)[-－–]\d{4}[-－–]\d{4,7})(?!\d)
  | (?:(?<![A-Za-z0-9])|(?<=attack\.))(?P<technique>[Tt][01]\d{3}(?:\.\d{3})?)(?![\dA-Za-z])
  | (?<![A-Za-z0-9])(?P<attack>TA\d{4}|M1\d{3})(?![\dA-Za-z])
  | (?<![A-Za-z0-9])A(?P<risk>0?[1-9]|1\d)[:：\-](?P<year>20\d\d)(?![\dA-Za-z]|-\d)
    """,
    re.VERBOSE,
)
_ID_ANY_CASE = re.compile(r"\A(?:ta?\d{4}(?:\.\d{3})?|m1\d{3}|a\d\d:20\d\d)\Z", re.IGNORECASE)


def _canonical(match: re.Match[str]) -> str:
    part = match.groupdict()
    if part["cwe_page"]:
        return f"CWE-{int(part['cwe_page'])}"
    if part["list"]:
        return f"{part['list'].upper()}-{part['number']}"
    if part["risk"]:
        return f"A{int(part['risk']):02}:{part['year']}"
    name = part["attack_page"] or part["cve"] or part["technique"] or part["attack"]
    return re.sub("[－–]", "-", name.upper()).replace("/", ".")
