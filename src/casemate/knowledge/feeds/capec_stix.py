"""CAPEC as STIX 2.1 (https://github.com/mitre/cti/tree/master/capec/2.1): attack patterns and what they refer to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from casemate.errors import KnowledgeError
from casemate.knowledge.feeds import packed, stix
from casemate.knowledge.feeds.fields import Fields
from casemate.knowledge.node import Edge, EdgeKind, Kind, Node, Record, State

SOURCE = "CAPEC"

_PATTERN = re.compile(r"CAPEC-\d{1,6}\Z", re.ASCII)
_WEAKNESS = re.compile(r"CWE-\d{1,6}\Z", re.ASCII)
_VERSION = re.compile(r"\d+(?:\.\d+)*", re.ASCII)
_OURS, _THEIRS = re.compile(r'"x_capec_'), re.compile(r'"x[-_]mitre[-_]')


@dataclass(frozen=True, slots=True)
class _Pattern:
    node: Node
    parents: tuple[str, ...]
    weaknesses: tuple[str, ...]
    techniques: tuple[str, ...]


def recognises(path: Path) -> bool:
    """Whether a file, or the files of a folder, begin like CAPEC in STIX."""
    return stix.recognises(path, ours=_OURS, theirs=_THEIRS)


def read(path: Path) -> Iterator[Record]:
    """Every attack pattern, live or not, with its parents, the weaknesses that it attacks and its ATT&CK techniques.

    Raises:
        KnowledgeError: a file is damaged or is not of CAPEC, or is of several versions; names line or object.
    """
    found = stix.collected(path, ("attack-pattern",), facts=_facts, files=packed.files_of(path, packed.JSON_ENDINGS))
    versions = {pattern.node.version for pattern in found.values()}
    if not found:
        raise KnowledgeError("holds no attack pattern of CAPEC", where=str(path))
    if len(versions) > 1:
        raise KnowledgeError(f"is of different versions: {', '.join(sorted(versions))}", where=str(path))
    names = {id_: pattern.node.id for id_, pattern in found.items()}
    for pattern in sorted(found.values(), key=lambda pattern: (_number(pattern.node), repr(pattern.node))):
        yield from _records(pattern, names)


def _number(node: Node) -> int:
    return int(node.id.rpartition("-")[2])


def _records(pattern: _Pattern, names: dict[str, str]) -> Iterator[Record]:
    node = pattern.node
    yield node
    if node.state is not State.LIVE:
        return
    for parent in sorted(names[parent] for parent in pattern.parents if parent in names):
        yield Edge(node.id, "child-of", parent, EdgeKind.OFFICIAL, SOURCE, node.version)
    for weakness in pattern.weaknesses:
        yield Edge(weakness, "attacked-by", node.id, EdgeKind.OFFICIAL, SOURCE, node.version)
    for technique in pattern.techniques:
        yield Edge(node.id, "carried-out-by", technique, EdgeKind.OFFICIAL, SOURCE, node.version)


def _facts(fields: Fields) -> _Pattern:
    id_ = next(iter(stix.external_ids(fields, "capec")), "")
    if not _PATTERN.match(id_):
        raise fields.complaint("carries no id of a CAPEC pattern")
    version = fields.line("x_capec_version", _VERSION)
    state = State.DEPRECATED if fields.text("x_capec_status") == "Deprecated" else State.LIVE
    if fields.flag("revoked"):
        state = State.REVOKED
    node = Node(
        id=id_,
        kind=Kind.PATTERN,
        name=fields.text("name"),
        source=SOURCE,
        version=version,
        text=stix.plain(fields.said("description")),
        state=state,
        abstraction=fields.said("x_capec_abstraction"),
    )
    return _Pattern(
        node,
        parents=fields.texts("x_capec_child_of_refs"),
        weaknesses=_referred(fields, "cwe", shape=_WEAKNESS),
        techniques=_referred(fields, "ATTACK", shape=stix.TECHNIQUE),
    )


def _referred(fields: Fields, source: str, *, shape: re.Pattern[str]) -> tuple[str, ...]:
    found = stix.external_ids(fields, source)
    for id_ in found:
        if not shape.match(id_):
            raise fields.complaint(f"refers to {id_!r}, which is no id of {source}")
    return found
