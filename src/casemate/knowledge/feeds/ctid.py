"""What the Center for Threat-Informed Defense maps to ATT&CK.

Exploited vulnerabilities and NIST controls come as the JSON of https://github.com/center-for-threat-informed-defense/
mappings-explorer; older vulnerabilities as the CSV of https://github.com/center-for-threat-informed-defense/attack_to_cve,
which was made for ATT&CK 9 and knows no version of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from casemate.errors import KnowledgeError
from casemate.knowledge.facts.records import CTID_KEV, CTID_NIST
from casemate.knowledge.feeds import packed, whole
from casemate.knowledge.feeds.fields import Fields
from casemate.knowledge.node import Edge, EdgeKind, Record

CVE = ("CTID mappings of CVE", "ATT&CK 9")

_EFFECTS = {
    "exploitation_technique": "way-in",
    "primary_impact": "first-effect",
    "secondary_impact": "second-effect",
}
_COLUMNS = {
    "Exploitation Technique": "way-in",
    "Primary Impact": "first-effect",
    "Secondary Impact": "second-effect",
}
_UNSAID = ("", "uncategorized")
_FRAMEWORK = re.compile(r'"mapping_framework"\s*:\s*"(\w+)"')
_TECHNIQUE = re.compile(r"T\d{4}(?:\.\d{3})?", re.ASCII)
_TECHNIQUES = re.compile(r"\bT\d{4}(?:\.\d{3})?\b", re.ASCII)
_CVE = re.compile(r"CVE-\d{4}-\d{4,}", re.ASCII)
_CONTROL = re.compile(r"([A-Z]{2})-0?(\d{1,2})(?:\(0?(\d{1,2})\))?", re.ASCII)
_DAY = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})", re.ASCII)
_REVISION = re.compile(r"(?:rev|r)\.?\s?(\d)", re.ASCII)
_ATTACK = re.compile(r"\d{1,2}\.\d", re.ASCII)


def recognises_kev(path: Path) -> bool:
    """Whether a file begins like the mapping of exploited vulnerabilities."""
    return _framework(path) == "kev"


def recognises_nist(path: Path) -> bool:
    """Whether a file begins like the mapping of NIST controls."""
    return _framework(path) == "nist_800_53"


def recognises_cve(path: Path) -> bool:
    """Whether a file begins like the older table of vulnerabilities."""
    return set(whole.columns(path)) >= {"CVE ID", *_COLUMNS}


def read_kev(path: Path) -> Iterator[Record]:
    """Which techniques exploit a vulnerability, and what that gives.

    Raises:
        KnowledgeError: the file is damaged or another's; names the line or the vulnerability.
    """
    metadata, mappings = _mapping(path, "kev")
    month, day, year = _matched(metadata, "mapping_framework_version", shape=_DAY)
    version = f"{year}-{month:0>2}-{day:0>2}"
    for mapping in mappings:
        kind = mapping.line("mapping_type")
        if kind in _UNSAID:
            continue
        if kind not in _EFFECTS:
            raise KnowledgeError(f"is mapped in an unknown way, {kind!r}", where=mapping.where)
        ends = mapping.line("capability_id", _CVE), mapping.line("attack_object_id", _TECHNIQUE)
        yield Edge(ends[0], _EFFECTS[kind], ends[1], EdgeKind.OFFICIAL, CTID_KEV[0], version)


def read_nist(path: Path) -> Iterator[Record]:
    """Which techniques a control mitigates.

    Raises:
        KnowledgeError: the file is damaged or another's; names the line or the control.
    """
    metadata, mappings = _mapping(path, "nist_800_53")
    (revision,) = _matched(metadata, "mapping_framework_version", shape=_REVISION)
    version = f"rev {revision}, ATT&CK {metadata.line('attack_version', _ATTACK)}"
    for mapping in mappings:
        if (kind := mapping.line("mapping_type")) != "mitigates":
            raise KnowledgeError(f"is mapped in an unknown way, {kind!r}", where=mapping.where)
        family, number, enhancement = _matched(mapping, "capability_id", shape=_CONTROL)
        control = f"NIST {family}-{number}" + (f"({enhancement})" if enhancement else "")
        technique = mapping.line("attack_object_id", _TECHNIQUE)
        yield Edge(control, "mitigates", technique, EdgeKind.OFFICIAL, CTID_NIST[0], version)


def read_cve(path: Path) -> Iterator[Record]:
    """Which techniques exploit a vulnerability, and what that gives; a technique that is mistyped there is left out.

    Raises:
        KnowledgeError: the file is damaged or another's; names the line.
    """
    empty = True
    for row in whole.table(path):
        if not row.values.keys() >= {"CVE ID", *_COLUMNS}:
            raise KnowledgeError("is not the table of vulnerabilities and techniques", where=str(path))
        cve = row.line("CVE ID", _CVE)
        for column, relation in _COLUMNS.items():
            for technique in dict.fromkeys(_TECHNIQUES.findall(row.values[column])):
                empty = False
                yield Edge(cve, relation, technique, EdgeKind.OFFICIAL, *CVE)
    if empty:
        raise KnowledgeError("maps nothing", where=str(path))


def _framework(path: Path) -> str:
    match = _FRAMEWORK.search(packed.head(path))
    return match[1] if match else ""


def _mapping(path: Path, framework: str) -> tuple[Fields, list[Fields]]:
    """The metadata of a file, and what it maps; what is said to have no counterpart is left out."""
    document = whole.document(path)
    metadata = document.part("metadata")
    if (found := metadata.line("mapping_framework")) != framework:
        raise KnowledgeError(f"maps {found}, not {framework}", where=str(path))
    if (domain := metadata.line("technology_domain")) != "enterprise":
        raise KnowledgeError(f"maps to ATT&CK for {domain}, not Enterprise", where=str(path))
    entries = document.entries("mapping_objects", named="capability_id")
    mappings = [entry for entry in entries if entry.values.get("status") != "non_mappable"]
    if not mappings:
        raise KnowledgeError("maps nothing", where=str(path))
    return metadata, mappings


def _matched(entry: Fields, key: str, *, shape: re.Pattern[str]) -> tuple[str, ...]:
    match = shape.fullmatch(entry.line(key, shape))
    return match.groups(default="") if match else ()
