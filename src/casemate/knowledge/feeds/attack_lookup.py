"""ATT&CK Enterprise as three look-up files (techniques, mitigations, relationships) extracted from the STIX bundle.

Source of the bundle: https://github.com/mitre-attack/attack-stix-data. Tactics come as short names; their ids and names
are in our own table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from casemate.errors import KnowledgeError
from casemate.knowledge.feeds import packed, stix
from casemate.knowledge.feeds.fields import Fields
from casemate.knowledge.feeds.streams import json_array, json_head
from casemate.knowledge.node import Edge, EdgeKind, Kind, Node, Record, State
from casemate.knowledge.tsv import FACTS, rows

SOURCE = "ATT&CK"

_OPENING = "attack-patterns"
_SHAPES = {Kind.TECHNIQUE: stix.TECHNIQUE, Kind.MITIGATION: stix.MITIGATION}
_ALWAYS = ("stix_id", "description", "revoked", "deprecated")
_VERSION = re.compile(r"enterprise-attack-(\d+\.\d+)\.json\Z")
_TACTICS_OF = "18.1"
"""The version whose tactics the look-up files name; later ones come as STIX."""


@dataclass(frozen=True, slots=True)
class Files:
    """The three files, all of one version; `beside` finds them by the first one's name."""

    techniques: Path
    mitigations: Path
    relationships: Path

    @classmethod
    def beside(cls, techniques: Path) -> Files:
        """The files that lie beside the one of techniques and are named after it."""
        others = (
            techniques.with_name(techniques.name.replace(_OPENING, kind)) for kind in ("mitigations", "relationships")
        )
        return cls(techniques, *others)


def recognises(path: Path) -> bool:
    """Whether a file is the one of techniques."""
    return path.name.endswith(f"{_OPENING}.json") and '"_metadata"' in packed.head(path)


def read(path: Path) -> Iterator[Record]:
    """Tactics, techniques, mitigations, and the edges among them; revoked ones too, with their successor.

    Raises:
        KnowledgeError: a file is damaged, is another's, or they are of different versions; names line or object.
    """
    files = Files.beside(path)
    version = _version(files)
    names: dict[str, str] = {}
    tactics = {row["shortname"]: row["id"] for row in rows(FACTS, "tactics.tsv")}
    for row in rows(FACTS, "tactics.tsv"):
        if row["version"] == _TACTICS_OF:
            yield Node(row["id"], Kind.TACTIC, row["name"], SOURCE, version, name_zh=row["name_zh"])
    for entry in _entries(files.techniques, "attack_patterns"):
        if node := _node(entry, Kind.TECHNIQUE, version=version):
            names[entry.text("stix_id")] = node.id
            yield node
            yield from _achieves(entry, node, tactics=tactics)
    for entry in _entries(files.mitigations, "mitigations"):
        if node := _node(entry, Kind.MITIGATION, version=version):
            names[entry.text("stix_id")] = node.id
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


def _entries(path: Path, key: str) -> Iterator[Fields]:
    for values in json_array(path, key):
        names = (values.get("external_id"), values.get("stix_id"))
        yield Fields(values, str(path), next((name for name in names if isinstance(name, str) and name), "an object"))


def _node(entry: Fields, kind: Kind, *, version: str) -> Node | None:
    """The node of an entry; None for an old mitigation that carries a technique's id."""
    id_, name = entry.text("external_id"), entry.text("name")
    for key in _ALWAYS:
        if key not in entry.values:
            raise entry.lacks(key)
    if not _SHAPES[kind].match(id_):
        return None
    state = State.LIVE
    if entry.flag("revoked"):
        state = State.REVOKED
    elif entry.flag("deprecated"):
        state = State.DEPRECATED
    return Node(id_, kind, name, SOURCE, version, text=stix.plain(entry.said("description")), state=state)


def _achieves(entry: Fields, node: Node, *, tactics: dict[str, str]) -> Iterator[Edge]:
    for shortname in entry.texts("tactics") if node.state is State.LIVE else ():
        if shortname not in tactics:
            raise entry.complaint(f"names an unknown tactic {shortname!r}")
        yield Edge(node.id, "achieves", tactics[shortname], EdgeKind.OFFICIAL, SOURCE, node.version)


def _edges(path: Path, names: dict[str, str], *, version: str) -> Iterator[Edge]:
    for entry in _entries(path, "relationships"):
        relation = stix.RELATIONS.get(entry.text("relationship_type"))
        start, end = names.get(entry.text("source_ref")), names.get(entry.text("target_ref"))
        if relation and start and end:
            yield Edge(start, relation, end, EdgeKind.OFFICIAL, SOURCE, version)
