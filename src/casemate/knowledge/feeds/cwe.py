"""The CWE list, whatever format it came in: what it says of an entry, and the records that follow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from casemate.errors import KnowledgeError
from casemate.knowledge.node import Alias, Edge, EdgeKind, Kind, Node, Record, State

SOURCE = "CWE"

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
_KINDS = (Kind.WEAKNESS, Kind.CATEGORY, Kind.VIEW)
_ADVICE_CHARS = 240
_QUOTED = re.compile(r"\('([^']+)'\)")
_NUMBER = re.compile(r"\d{1,6}\Z", re.ASCII)
_SUCCESSOR = re.compile(r"CWE-(\d+)")


@dataclass(frozen=True, slots=True)
class Entry:
    """What the list says of one weakness, category or view. Numbers are as they stand there, without `CWE-`.

    `related` holds nature, number and view; `mitigations` strategy and text; `examples` the vulnerability and what
    happened. All texts are on one line.
    """

    number: str
    kind: Kind
    name: str
    status: str
    text: str
    abstraction: str = ""
    usage: str = ""
    terms: tuple[str, ...] = ()
    related: tuple[tuple[str, str, str], ...] = ()
    members: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    mitigations: tuple[tuple[str, str], ...] = ()
    examples: tuple[tuple[str, str], ...] = ()


def records(path: Path, entries: Iterable[Entry], *, version: str) -> Iterator[Record]:
    """Every entry's node with its names, relations, patterns and observed examples, in the order of kind and number.

    Raises:
        KnowledgeError: an entry is there twice with different content or names no number where it should, or there is
            no weakness.
    """
    known: dict[str, Entry] = {}
    for entry in entries:
        _check(path, entry)
        if known.setdefault(entry.number, entry) != entry:
            raise KnowledgeError(f"CWE-{entry.number} is there twice, with different content", where=str(path))
    if not any(entry.kind is Kind.WEAKNESS for entry in known.values()):
        raise KnowledgeError("holds no weakness", where=str(path))
    for entry in sorted(known.values(), key=lambda entry: (_KINDS.index(entry.kind), int(entry.number))):
        yield from _records(entry, version)


def _check(path: Path, entry: Entry) -> None:
    related = (number for _, number, _ in entry.related)
    for number in (entry.number, *related, *entry.members, *entry.patterns):
        if not _NUMBER.match(number):
            raise KnowledgeError(
                f"CWE-{entry.number[:20]} names {number[:20]!r} where a number belongs", where=str(path)
            )


def _records(entry: Entry, version: str) -> Iterator[Record]:
    node = Node(
        id=f"CWE-{entry.number}",
        kind=entry.kind,
        name=entry.name,
        source=SOURCE,
        version=version,
        text=entry.text,
        state=State.DEPRECATED if entry.status == "Deprecated" else State.LIVE,
        abstraction=entry.abstraction,
        usage=entry.usage,
        advice=_advice(entry),
    )
    yield node
    for term in (*_QUOTED.findall(node.name), *entry.terms):
        yield Alias(term, node.id, SOURCE)
    if node.state is State.LIVE:
        yield from _edges(entry, node)
        yield from _observed(entry, node)
    elif successor := _SUCCESSOR.search(node.text):
        yield _official(node, "replaced-by", end=f"CWE-{successor[1]}")


def _edges(entry: Entry, node: Node) -> Iterator[Edge]:
    for nature, number, view in entry.related:
        if nature in _RELATIONS:
            yield _official(node, _RELATIONS[nature], end=f"CWE-{number}", note=f"view {view}")
    for number in entry.members:
        yield _official(node, "has-member", end=f"CWE-{number}")
    for number in entry.patterns:
        yield _official(node, "attacked-by", end=f"CAPEC-{number}")


def _observed(entry: Entry, node: Node) -> Iterator[Record]:
    for cve, text in entry.examples:
        if cve.startswith("CVE-"):
            yield Node(cve, Kind.VULNERABILITY, cve, SOURCE, node.version, text=text)
            yield Edge(node.id, "observed-in", cve, EdgeKind.EVIDENCE, SOURCE, node.version, support=(cve,))


def _official(node: Node, relation: str, *, end: str, note: str = "") -> Edge:
    return Edge(node.id, relation, end, EdgeKind.OFFICIAL, SOURCE, node.version, note=note)


def _advice(entry: Entry) -> str:
    """The opening of the most telling mitigation."""
    best: dict[str, str] = {}
    for strategy, text in entry.mitigations:
        best.setdefault(strategy, text)
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
