"""ATT&CK Enterprise as STIX 2 (https://github.com/mitre-attack/attack-stix-data, https://github.com/mitre/cti).

Of its objects tactics, techniques and mitigations are read, and the relations among them; groups, software, campaigns
and detections are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from casemate.errors import KnowledgeError
from casemate.knowledge.feeds import packed, stix
from casemate.knowledge.feeds.fields import Fields
from casemate.knowledge.node import Edge, EdgeKind, Kind, Node, Record, State
from casemate.knowledge.tsv import FACTS, rows

SOURCE = "ATT&CK"

_TACTIC = re.compile(r"TA\d{4}\Z", re.ASCII)
_VERSION = re.compile(r"\d+(?:\.\d+)+", re.ASCII)
_OURS, _THEIRS = re.compile(r'"x[-_]mitre[-_]'), re.compile(r'"x_capec_')
_DOMAIN, _CHAIN = "enterprise-attack", "mitre-attack"
_KINDS = {"x-mitre-tactic": Kind.TACTIC, "attack-pattern": Kind.TECHNIQUE, "course-of-action": Kind.MITIGATION}
_SHAPES = {Kind.TACTIC: _TACTIC, Kind.TECHNIQUE: stix.TECHNIQUE, Kind.MITIGATION: stix.MITIGATION}
_TYPES = (*_KINDS, "relationship", "x-mitre-collection")


@dataclass(frozen=True, slots=True)
class _Thing:
    """A tactic, technique or mitigation, as yet without version; `phases` names a technique's tactics in short."""

    node: Node
    shortname: str
    phases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Link:
    """A relation between two objects; a withdrawn one hides what it said before."""

    start: str
    relation: str
    end: str
    withdrawn: bool


@dataclass(frozen=True, slots=True)
class _Release:
    version: str


def recognises(path: Path) -> bool:
    """Whether a file, or the files of a folder, begin like ATT&CK in STIX, of whatever domain."""
    return stix.recognises(path, ours=_OURS, theirs=_THEIRS)


def read(path: Path) -> Iterator[Record]:
    """Tactics, techniques, mitigations, and the edges among them; revoked ones too, with their successor.

    Raises:
        KnowledgeError: a file is damaged or is not of ATT&CK Enterprise, which names line or object; or no object and
            no name tells the version.
    """
    files = packed.files_of(path, packed.JSON_ENDINGS)
    found = stix.collected(path, _TYPES, facts=_facts, files=files)
    releases = {release.version for release in found.values() if isinstance(release, _Release)}
    things = {id_: thing for id_, thing in found.items() if isinstance(thing, _Thing)}
    links = [link for link in found.values() if isinstance(link, _Link) and not link.withdrawn]
    if not any(thing.node.kind is Kind.TECHNIQUE for thing in things.values()):
        raise KnowledgeError("holds no technique of ATT&CK Enterprise", where=str(path))
    version = packed.version(path, releases, files=files, such_as="enterprise-attack-18.1.json")
    yield from _things(path, things, version=version)
    names = {id_: thing.node.id for id_, thing in things.items()}
    known = {
        (names[link.start], link.relation, names[link.end]) for link in links if {link.start, link.end} <= {*names}
    }
    for start, relation, end in sorted(known):
        yield Edge(start, relation, end, EdgeKind.OFFICIAL, SOURCE, version)


def _things(path: Path, things: dict[str, _Thing], *, version: str) -> Iterator[Record]:
    tactics = {thing.shortname: thing.node.id for thing in things.values() if thing.node.kind is Kind.TACTIC}
    order = [*_SHAPES]
    for thing in sorted(things.values(), key=lambda thing: (order.index(thing.node.kind), repr(thing.node))):
        node = replace(thing.node, version=version)
        yield node
        for phase in thing.phases if node.state is State.LIVE else ():
            if phase not in tactics:
                raise KnowledgeError(f"{node.id} names an unknown tactic {phase!r}", where=str(path))
            yield Edge(node.id, "achieves", tactics[phase], EdgeKind.OFFICIAL, SOURCE, version)


def _facts(fields: Fields) -> _Thing | _Link | _Release | None:
    match fields.values["type"]:
        case "relationship":
            return _link(fields)
        case "x-mitre-collection":
            return _release(fields)
        case type_:
            return _thing(fields, _KINDS[type_])


def _link(fields: Fields) -> _Link | None:
    relation = stix.RELATIONS.get(fields.text("relationship_type"))
    withdrawn = fields.flag("revoked") or fields.flag("x_mitre_deprecated")
    return _Link(fields.text("source_ref"), relation, fields.text("target_ref"), withdrawn) if relation else None


def _release(fields: Fields) -> _Release:
    name = fields.text("name")
    if "enterprise" not in name.lower():
        raise _foreign(fields, name)
    return _Release(fields.line("x_mitre_version", _VERSION))


def _thing(fields: Fields, kind: Kind) -> _Thing | None:
    """The object in the graph's words; None for an old mitigation that carries a technique's id."""
    phases = [(one.text("kill_chain_name"), one.text("phase_name")) for one in fields.objects("kill_chain_phases")]
    domains = fields.texts("x_mitre_domains") or tuple(chain for chain, _ in phases)
    if kind is not Kind.MITIGATION and domains and not {_DOMAIN, _CHAIN} & {*domains}:
        raise _foreign(fields, domains[0])
    id_ = next(iter(stix.external_ids(fields, _CHAIN)), "")
    if not _SHAPES[kind].match(id_):
        if kind is Kind.MITIGATION:
            return None
        raise fields.complaint(f"carries no id of an ATT&CK {kind}")
    state = State.LIVE
    if fields.flag("revoked"):
        state = State.REVOKED
    elif fields.flag("x_mitre_deprecated"):
        state = State.DEPRECATED
    name, text = fields.text("name"), stix.plain(fields.said("description"))
    shortname = fields.text("x_mitre_shortname") if kind is Kind.TACTIC else ""
    name_zh = _tactic_zh(id_, name) if kind is Kind.TACTIC else ""
    node = Node(id_, kind, name, SOURCE, "", text=text, name_zh=name_zh, state=state)
    return _Thing(node, shortname, tuple(dict.fromkeys(phase for chain, phase in phases if chain == _CHAIN)))


def _tactic_zh(id_: str, name: str) -> str:
    """Our own name for a tactic that is still called as it was when we named it."""
    return next((row["name_zh"] for row in rows(FACTS, "tactics.tsv") if (row["id"], row["name"]) == (id_, name)), "")


def _foreign(fields: Fields, domain: str) -> KnowledgeError:
    return KnowledgeError(f"{fields.name} is of {domain}; only ATT&CK Enterprise is read", where=fields.where)
