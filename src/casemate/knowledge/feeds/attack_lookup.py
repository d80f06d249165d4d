"""ATT&CK Enterprise as three look-up files (techniques, mitigations, relationships) extracted from the STIX bundle.

Source of the bundle: https://github.com/mitre-attack/attack-stix-data. Tactics come as short names; their ids and names
are in our own table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casemate.errors import KnowledgeError
from casemate.knowledge.curated import tables
from casemate.knowledge.feeds.streams import json_array, json_head
from casemate.knowledge.node import Edge, EdgeKind, Kind, Node, Record, State

SOURCE = "ATT&CK"

_TECHNIQUE = re.compile(r"T\d{4}(\.\d{3})?\Z")
_MITIGATION = re.compile(r"M\d{4}\Z")
_VERSION = re.compile(r"enterprise-attack-(\d+\.\d+)\.json\Z")
_RELATIONS = {"subtechnique-of": "child-of", "mitigates": "mitigates", "revoked-by": "replaced-by"}
_CITATION = re.compile(r"\s*\(Citation: [^)]*\)|\s*\(Citation: [^)]*$")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True, slots=True)
class Files:
    """The three files, all of one version."""

    techniques: Path
    mitigations: Path
    relationships: Path


def read(files: Files) -> Iterator[Record]:
    """Tactics, techniques, mitigations, and the edges among them; revoked ones too, with their successor.

    Raises:
        KnowledgeError: a file is damaged, is another's, or they are of different versions; names line or object.
    """
    version = _version(files)
    names: dict[str, str] = {}
    tactics = {tactic.shortname: tactic.id for tactic in tables.tactics()}
    for tactic in tables.tactics():
        yield Node(tactic.id, Kind.TACTIC, tactic.name, SOURCE, version, name_zh=tactic.name_zh)
    for entry in json_array(files.techniques, "attack_patterns"):
        node = _node(files.techniques, entry, shape=_TECHNIQUE, version=version)
        if node:
            names[entry["stix_id"]] = node.id
            yield node
            yield from _achieves(files.techniques, entry, node=node, tactics=tactics)
    for entry in json_array(files.mitigations, "mitigations"):
        node = _node(files.mitigations, entry, shape=_MITIGATION, version=version)
        if node:
            names[entry["stix_id"]] = node.id
            yield node
    yield from _edges(files.relationships, names, version=version)


def _version(files: Files) -> str:
    versions = {_version_of(path, kind) for path, kind in _expected(files)}
    if len(versions) > 1:
        raise KnowledgeError(
            f"the ATT&CK files are of different versions: {', '.join(sorted(versions))}",
            where=str(files.techniques.parent),
            remedy="casemate fetch attack",
        )
    return versions.pop()


def _expected(files: Files) -> tuple[tuple[Path, str], ...]:
    return (
        (files.techniques, "attack-pattern"),
        (files.mitigations, "course-of-action"),
        (files.relationships, "relationship"),
    )


def _version_of(path: Path, kind: str) -> str:
    head = json_head(path, "_metadata")
    match = _VERSION.search(str(head.get("source_file", "")))
    if not match or head.get("object_type") != kind:
        raise KnowledgeError(f"is not ATT&CK's {kind} file", where=str(path), remedy="casemate fetch attack")
    return match[1]


def _node(path: Path, entry: dict[str, Any], *, shape: re.Pattern[str], version: str) -> Node | None:
    """The node of an entry; None for an old mitigation that carries a technique's id."""
    try:
        id_, name, text = entry["external_id"], entry["name"], entry["description"]
        revoked, deprecated = bool(entry["revoked"]), bool(entry["deprecated"])
        entry["stix_id"]
    except KeyError as error:
        raise _lacking(path, entry, error=error) from error
    if not shape.match(id_):
        return None
    state = State.REVOKED if revoked else State.DEPRECATED if deprecated else State.LIVE
    kind = Kind.MITIGATION if shape is _MITIGATION else Kind.TECHNIQUE
    return Node(id_, kind, name, SOURCE, version, text=_plain(text), state=state)


def _achieves(path: Path, entry: dict[str, Any], *, node: Node, tactics: dict[str, str]) -> Iterator[Edge]:
    if node.state is not State.LIVE:
        return
    for shortname in entry.get("tactics", ()):
        if shortname not in tactics:
            raise KnowledgeError(f"{node.id} names an unknown tactic {shortname!r}", where=str(path))
        yield Edge(node.id, "achieves", tactics[shortname], EdgeKind.OFFICIAL, SOURCE, node.version)


def _edges(path: Path, names: dict[str, str], *, version: str) -> Iterator[Edge]:
    for entry in json_array(path, "relationships"):
        try:
            relation = _RELATIONS.get(entry["relationship_type"])
            start, end = names.get(entry["source_ref"]), names.get(entry["target_ref"])
        except KeyError as error:
            raise _lacking(path, entry, error=error) from error
        if relation and start and end:
            yield Edge(start, relation, end, EdgeKind.OFFICIAL, SOURCE, version)


def _lacking(path: Path, entry: dict[str, Any], *, error: KeyError) -> KnowledgeError:
    name = entry.get("external_id") or entry.get("stix_id") or "an object"
    return KnowledgeError(f"{name} lacks {error.args[0]!r}", where=str(path), remedy="casemate fetch attack")


def _plain(text: str) -> str:
    return " ".join(_LINK.sub(r"\1", _CITATION.sub("", text)).split())
