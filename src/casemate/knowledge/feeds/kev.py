"""CISA's Known Exploited Vulnerabilities catalogue, as JSON or CSV.

Source: https://www.cisa.gov/known-exploited-vulnerabilities-catalog
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from casemate.errors import KnowledgeError
from casemate.knowledge.facts import records
from casemate.knowledge.feeds import packed, whole
from casemate.knowledge.feeds.fields import Fields
from casemate.knowledge.node import Record

_COLUMNS = {"cveID", "vulnerabilityName", "dateAdded"}
_KEYS = ("vulnerabilities", "cveID", "dateAdded")
_CVE = re.compile(r"CVE-\d{4}-\d{4,}", re.ASCII)
_CWE = re.compile(r"CWE-\d+", re.ASCII)
_DATE = re.compile(r"\d{4}[-.]\d{2}[-.]\d{2}", re.ASCII)


def recognises(path: Path) -> bool:
    """Whether a file begins like the catalogue."""
    head = packed.head(path).lstrip()
    if head.startswith("{"):
        return '"catalogVersion"' in head or all(f'"{key}"' in head for key in _KEYS)
    return set(whole.columns(path)) >= _COLUMNS


def read(path: Path) -> Iterator[Record]:
    """Every vulnerability, and which weaknesses it shows; the version is the catalogue's, or its newest date.

    Raises:
        KnowledgeError: the file is damaged or is not the catalogue; names the line or the vulnerability.
    """
    version, entries = _catalogue(path)
    if not entries:
        raise KnowledgeError("holds no vulnerability", where=str(path))
    newest = max(entry.line("dateAdded", _DATE) for entry in entries)
    for entry in entries:
        yield from records.exploited(
            entry.line("cveID", _CVE),
            entry.line("vulnerabilityName"),
            weaknesses=_weaknesses(entry),
            version=(version or newest).replace(".", "-"),  # the catalogue dots its dates, its entries dash theirs
        )


def _catalogue(path: Path) -> tuple[str, list[Fields]]:
    if not packed.head(path).lstrip().startswith("{"):
        return "", list(whole.table(path))
    catalogue = whole.document(path)
    version = catalogue.line("catalogVersion", _DATE) if "catalogVersion" in catalogue.values else ""
    return version, list(catalogue.entries("vulnerabilities", named="cveID"))


def _weaknesses(entry: Fields) -> tuple[str, ...]:
    """The ids of a list, or of the text that CSV has in its place."""
    value = entry.values.get("cwes")
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise entry.wrong("cwes", "a list of weaknesses")
    return tuple(dict.fromkeys(item.strip() for item in value if _CWE.fullmatch(item.strip())))
