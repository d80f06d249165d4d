"""The official CWE list as XML, plain or in its zip (https://cwe.mitre.org/data/downloads.html; schema 7)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET  # elements only; `streams` parses

from casemate.errors import KnowledgeError
from casemate.knowledge.feeds import cwe, packed
from casemate.knowledge.feeds.streams import xml_records
from casemate.knowledge.node import Kind, Record

SOURCE = cwe.SOURCE

_KINDS = {"Weakness": Kind.WEAKNESS, "Category": Kind.CATEGORY, "View": Kind.VIEW}
_TEXTS = ("Description", "Summary", "Objective")
_MEMBERS = ("Relationships/Has_Member", "Members/Has_Member")


def recognises(path: Path) -> bool:
    """Whether a file begins like the CWE list, or is named like its zip."""
    named = path.is_file() and path.name.startswith("cwec") and path.suffix == ".zip"
    return named or "<Weakness_Catalog" in packed.head(path, suffix=".xml")


def read(path: Path) -> Iterator[Record]:
    """Every weakness, category and view, live or not, with its names, relations, patterns and observed examples.

    Raises:
        KnowledgeError: the file is damaged or is not the CWE list; names the entry or line.
    """
    elements = xml_records(path, _KINDS)
    version = _version(path, next(elements, None))
    yield from cwe.records(path, (_entry(path, element) for element in elements), version=version)


def _version(path: Path, root: ET.Element | None) -> str:
    version = root.get("Version", "") if root is not None and root.tag == "Weakness_Catalog" else ""
    if root is None or not version or root.get("Name") != "CWE":
        raise KnowledgeError("is not the CWE list", where=str(path), remedy="casemate fetch cwe")
    return version


def _entry(path: Path, element: ET.Element) -> cwe.Entry:
    number, name = element.get("ID", ""), " ".join(element.get("Name", "").split())
    if not number.isdecimal() or not name:
        raise KnowledgeError(f"{element.tag} {number or repr(name)} lacks an id or a name", where=str(path))
    related = element.iterfind("Related_Weaknesses/Related_Weakness")
    patterns = element.iterfind("Related_Attack_Patterns/Related_Attack_Pattern")
    return cwe.Entry(
        number=number,
        kind=_KINDS[element.tag],
        name=name,
        status=element.get("Status", ""),
        text=next((text for tag in _TEXTS if (text := _text(element.find(tag)))), ""),
        abstraction=element.get("Abstraction", ""),
        usage=_text(element.find("Mapping_Notes/Usage")),
        terms=tuple(_text(term) for term in element.iterfind("Alternate_Terms/Alternate_Term/Term")),
        related=tuple((one.get("Nature", ""), one.get("CWE_ID", ""), one.get("View_ID", "")) for one in related),
        members=tuple(one.get("CWE_ID", "") for way in _MEMBERS for one in element.iterfind(way)),
        patterns=tuple(one.get("CAPEC_ID", "") for one in patterns),
        mitigations=_pairs(element, "Potential_Mitigations/Mitigation", tags=("Strategy", "Description")),
        examples=_pairs(element, "Observed_Examples/Observed_Example", tags=("Reference", "Description")),
    )


def _pairs(element: ET.Element, way: str, *, tags: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    first, second = tags
    return tuple((_text(one.find(first)), _text(one.find(second))) for one in element.iterfind(way))


def _text(element: ET.Element | None) -> str:
    return "" if element is None else " ".join(" ".join(element.itertext()).split())
