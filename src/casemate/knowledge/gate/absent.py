"""What may be said of an identifier that the graph does not have: unreal, or of a list that the graph does not hold.

Each list below is a fact of a catalogue that the graph holds in part, with where it is stated. What no source that we
have read states is not listed: such an id is told as unreal.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from casemate.knowledge.gate.lexicon import Lexicon
from casemate.knowledge.graph import Graph

UNREAL = "does not exist"
ELSEWHERE = "not of a catalogue in this graph"

_MOBILE = frozenset({
    *range(1398, 1479), 1481, *range(1507, 1511), 1512, 1513, 1516, 1517, 1520, 1521, 1523, 1532, 1533, 1540, 1541,
    1544, 1575, 1576, 1577, 1579, 1581, 1582, 1603, 1604, 1605, 1616, 1617, 1618, *range(1623, 1647), 1655, 1658,
    *range(1660, 1664),
})  # fmt: skip
"""Techniques for mobile devices: those in Attack Flow 3's list of every ATT&CK technique, revoked ones included
(center-for-threat-informed-defense/attack-flow, `builder.config.intel.ts`), that the enterprise matrix lacks."""
_MOBILE_MITIGATIONS = frozenset({1002, 1003, 1004, 1005, 1007, 1009, 1010, 1012, 1014, 1058})
"""attack.mitre.org/mitigations/mobile, today and of 2020."""
_OTHER_TACTICS = frozenset({*range(12, 40), 41, *range(100, 112)})
"""Tactics of PRE-ATT&CK (12 to 26, its former pages tactics/pre), of mobile devices (27 to 39, 41) and of control
systems (100 to 111), as the list of Attack Flow 3 has them."""
_CAPEC_GROUPS = frozenset({118, 152, 156, 1000, 2000, 3000})
"""Categories and views of CAPEC: 118 and 152 in capec_v2.11.xml, 156, 1000, 2000 and 3000 on capec.mitre.org."""
_FIRST_TOP_10 = "2003"
"""The first list of OWASP, of which CWE has no categories; those of 2004 to 2017 it has."""
_SECTIONS = (range(102, 104), range(302, 319, 2), range(400, 415), range(500, 535))
"""45 CFR Part 164: the Security Rule is 164.302 to 164.318, even numbers alone, of which the graph holds 308 to 316;
164.102 and 164.103 are of its Subpart A, the Breach Notification Rule lies in 164.400 to 164.414 and the Privacy Rule
in 164.500 to 164.534."""
_FIRST_YEAR = 1999
"""The year of the first CVE identifiers (cve.org)."""
_CVE = re.compile(r"CVE-(?P<year>\d{4})-(?P<number>\d{4}|[1-9]\d{4,18})")


def reason(id_: str, graph: Graph, *, lexicon: Lexicon) -> tuple[bool, str]:
    """Whether an id that the graph lacks is known to be unreal, and the reason to give."""
    prefix = re.split(r"[\d\s-]", id_, maxsplit=1)[0]
    if not _is_held(prefix, graph):
        return False, ELSEWHERE
    if prefix == "CVE":
        return (False, ELSEWHERE) if _is_possible_cve(id_) else (True, "no CVE can have this number")
    if prefix == "OWASP":
        elsewhere = not lexicon.risk_years
    elif prefix == "A":
        elsewhere = _is_other_top_10(id_, lexicon)
    else:
        elsewhere = prefix in _ELSEWHERE and _ELSEWHERE[prefix](id_)
    return (False, ELSEWHERE) if elsewhere else (True, UNREAL)


def is_heading(id_: str, graph: Graph) -> bool:
    """Whether an id is a chapter of which the graph holds the parts, as `MLPS 8.1.4` or `ASVS V1`."""
    return id_.startswith(("MLPS 8.", "ASVS V")) and id_[-1].isdigit() and graph.node(f"{id_}.1") is not None


_WITNESSES = {
    "D3": "D3-AH", "Sigma": "", "GDPR": "GDPR Art. 1", "HIPAA": "HIPAA 164.312", "MLPS": "MLPS 8.1.4.1",
    "ASVS": "ASVS V1.1", "NIST": "NIST AC-1", "M": "M1047", "CAPEC": "CAPEC-66", "T": "T1059", "TA": "TA0001",
}  # fmt: skip
"""A node that is there if the catalogue is; no Sigma collection is complete, as anyone may write a rule."""


def _is_held(prefix: str, graph: Graph) -> bool:
    witness = _WITNESSES.get(prefix)
    return witness is None or bool(witness and graph.node(witness))


def _is_possible_cve(id_: str) -> bool:
    match = _CVE.fullmatch(id_)
    return bool(match and int(match["year"]) >= _FIRST_YEAR)


def _is_other_technique(id_: str) -> bool:
    """Of the matrix for control systems, whose numbers begin with 0, or for mobile devices."""
    number, _, sub = id_[1:].partition(".")
    return number[0] == "0" or (int(number) in _MOBILE and len(sub) in (0, 3))


def _is_other_top_10(id_: str, lexicon: Lexicon) -> bool:
    year = id_.rpartition(":")[2]
    newer = not lexicon.risk_years or year > lexicon.risk_years[0]
    return int(id_[1:3]) in range(1, 11) and (newer or year == _FIRST_TOP_10)


def _is_other_section(id_: str) -> bool:
    part, _, section = id_.removeprefix("HIPAA ").partition("(")[0].partition(".")
    return part != "164" or (any(int(section) in span for span in _SECTIONS) and int(section) not in range(308, 317, 2))


def _is_other_level(id_: str) -> bool:
    """Levels 1, 2 and 4 are chapters 6, 7 and 9 of GB/T 22239-2019; 8.2 to 8.5 extend level 3 to clouds and things."""
    chapter, section, *_ = id_.removeprefix("MLPS ").split(" ")[0].split(".")
    return (6 <= int(chapter) <= 9 and chapter != "8") or (chapter == "8" and 2 <= int(section) <= 5)


_ELSEWHERE: dict[str, Callable[[str], bool]] = {
    "T": _is_other_technique,
    "TA": lambda id_: int(id_[2:]) in _OTHER_TACTICS,
    "M": lambda id_: id_[1] == "0" or int(id_[1:]) in _MOBILE_MITIGATIONS,
    "CAPEC": lambda id_: int(id_.rpartition("-")[2]) in _CAPEC_GROUPS,
    "HIPAA": _is_other_section,
    "MLPS": _is_other_level,
    "ASVS": lambda id_: id_.startswith("ASVS v"),
}
"""Which ids of a catalogue belong to a part of it that the graph does not hold."""
