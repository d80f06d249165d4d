"""The official CWE list as XML (https://cwe.mitre.org/data/downloads.html; schema 7)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET  # elements only; `streams` parses

from casemate.errors import KnowledgeError
from casemate.knowledge.feeds.streams import xml_records
from casemate.knowledge.node import Alias, Edge, EdgeKind, Kind, Node, Record, State

SOURCE = "CWE"

_KINDS = {"Weakness": Kind.WEAKNESS, "Category": Kind.CATEGORY, "View": Kind.VIEW}
_TEXTS = ("Description", "Summary", "Objective")
_RELATIONS = {
    "ChildOf": "child-of",
    "PeerOf": "peer-of",
    "CanPrecede": "can-precede",
    "CanAlsoBe": "can-also-be",
    "Requires": "requires",
    "StartsWith": "starts-with",
}
_STRATEGIES = ("Parameterization", "Output Encoding", "Libraries or Frameworks", "Language Selection", "")
"""Which mitigation to show first; the rest (input validation, hardening, testing) says the same for most weaknesses."""
_ADVICE_CHARS = 240
_QUOTED = re.compile(r"\('([^']+)'\)")
_SUCCESSOR = re.compile(r"CWE-(\d+)")


def read(path: Path) -> Iterator[Record]:
    """Every weakness, category and view, live or not, with its names, relations, patterns and observed examples.

    Raises:
        KnowledgeError: the file is damaged or is not the CWE list; names the entry or line.
    """
    records = xml_records(path, _KINDS)
    version = _version(path, next(records, None))
    kinds = set()
    for element in records:
        kind = _KINDS[element.tag]
        kinds.add(kind)
        yield from _entry(path, element, kind=kind, version=version)
    if Kind.WEAKNESS not in kinds:
        raise KnowledgeError("holds no weakness", where=str(path))


def _version(path: Path, root: ET.Element | None) -> str:
    version = root.get("Version", "") if root is not None and root.tag == "Weakness_Catalog" else ""
    if root is None or not version or root.get("Name") != "CWE":
        raise KnowledgeError("is not the CWE list", where=str(path), remedy="casemate fetch cwe")
    return version


def _entry(path: Path, element: ET.Element, *, kind: Kind, version: str) -> Iterator[Record]:
    number, name, status = element.get("ID", ""), element.get("Name", ""), element.get("Status", "")
    if not number.isdecimal() or not name:
        raise KnowledgeError(f"{element.tag} {number or repr(name)} lacks an id or a name", where=str(path))
    node = Node(
        id=f"CWE-{number}",
        kind=kind,
        name=name,
        source=SOURCE,
        version=version,
        text=next((text for tag in _TEXTS if (text := _text(element.find(tag)))), ""),
        state=State.DEPRECATED if status == "Deprecated" else State.LIVE,
        abstraction=element.get("Abstraction", ""),
        usage=_text(element.find("Mapping_Notes/Usage")),
        advice=_advice(element),
    )
    yield node
    yield from _aliases(element, node)
    yield from _edges(element, node)


def _aliases(element: ET.Element, node: Node) -> Iterator[Alias]:
    quoted = _QUOTED.findall(node.name)
    for term in (*quoted, *(_text(term) for term in element.iterfind("Alternate_Terms/Alternate_Term/Term"))):
        yield Alias(term, node.id, SOURCE)


def _edges(element: ET.Element, node: Node) -> Iterator[Record]:
    if node.state is not State.LIVE:
        if successor := _SUCCESSOR.search(node.text):
            yield _official(node, "replaced-by", end=f"CWE-{successor[1]}")
        return
    for related in element.iterfind("Related_Weaknesses/Related_Weakness"):
        relation = _RELATIONS.get(related.get("Nature", ""))
        if relation:
            yield _official(node, relation, end=f"CWE-{related.get('CWE_ID')}", note=f"view {related.get('View_ID')}")
    for member in (*element.iterfind("Relationships/Has_Member"), *element.iterfind("Members/Has_Member")):
        yield _official(node, "has-member", end=f"CWE-{member.get('CWE_ID')}")
    for pattern in element.iterfind("Related_Attack_Patterns/Related_Attack_Pattern"):
        yield _official(node, "attacked-by", end=f"CAPEC-{pattern.get('CAPEC_ID')}")
    yield from _observed(element, node)


def _observed(element: ET.Element, node: Node) -> Iterator[Record]:
    for example in element.iterfind("Observed_Examples/Observed_Example"):
        cve, text = _text(example.find("Reference")), _text(example.find("Description"))
        if cve.startswith("CVE-"):
            yield Node(cve, Kind.VULNERABILITY, cve, SOURCE, node.version, text=text)
            yield Edge(node.id, "observed-in", cve, EdgeKind.EVIDENCE, SOURCE, node.version, support=(cve,))


def _official(node: Node, relation: str, *, end: str, note: str = "") -> Edge:
    return Edge(node.id, relation, end, EdgeKind.OFFICIAL, SOURCE, node.version, note=note)


def _advice(element: ET.Element) -> str:
    """The opening of the most telling mitigation."""
    best: dict[str, str] = {}
    for mitigation in element.iterfind("Potential_Mitigations/Mitigation"):
        strategy = _text(mitigation.find("Strategy"))
        best.setdefault(strategy, _text(mitigation.find("Description")))
    ranked = [best[strategy] for strategy in _STRATEGIES if strategy in best] or list(best.values())
    return _opening(ranked[0]) if ranked else ""


def _opening(text: str) -> str:
    """Whole sentences up to a limit, at least one."""
    sentences = re.split(r"(?<=[.!?])\s+", text)
    kept = sentences[0]
    for sentence in sentences[1:]:
        if len(kept) + len(sentence) > _ADVICE_CHARS:
            break
        kept = f"{kept} {sentence}"
    return kept


def _text(element: ET.Element | None) -> str:
    return "" if element is None else " ".join(" ".join(element.itertext()).split())
