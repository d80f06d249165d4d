"""STIX 2 as MITRE publishes its catalogues: one bundle, a folder of one-object bundles, or lines of objects.

Specification: https://docs.oasis-open.org/cti/stix/v2.1/stix-v2.1.html. The order of objects means nothing, and an
object may be there in several versions, of which the one that was modified last counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, TypeVar

from casemate.errors import KnowledgeError
from casemate.knowledge.feeds import packed
from casemate.knowledge.feeds.fields import Fields
from casemate.knowledge.feeds.streams import json_records

TECHNIQUE = re.compile(r"T\d{4}(\.\d{3})?\Z", re.ASCII)
MITIGATION = re.compile(r"M\d{4}\Z", re.ASCII)
RELATIONS = {"subtechnique-of": "child-of", "mitigates": "mitigates", "revoked-by": "replaced-by"}
"""What ATT&CK calls the relations that are read, and what the graph does."""

_BUNDLE, _OBJECTS = "bundle", "objects"
_TYPE = re.compile(
    r'"type"\s*:\s*"(?:bundle|attack-pattern|campaign|course-of-action|identity|intrusion-set|malware|marking-definition|'
    r'relationship|tool|x-mitre-[a-z-]+)"'
)
_CITATION = re.compile(r"\s*\(Citation: [^)]*\)|\s*\(Citation: [^)]*$")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_TAG = re.compile(r"</?xhtml:[^>]*>")

_Facts = TypeVar("_Facts")


def recognises(path: Path, *, ours: re.Pattern[str], theirs: re.Pattern[str]) -> bool:
    """Whether a file, or the files of a folder, begin like STIX, with one catalogue's marks and not the other's."""
    heads = [packed.head(file, suffix=".json") for file in packed.samples(path, packed.JSON_ENDINGS)]
    alike = all(head.lstrip()[:1] in ("{", "[") and _TYPE.search(head) for head in heads)
    return alike and any(ours.search(head) for head in heads) and not any(theirs.search(head) for head in heads)


def collected(
    path: Path, types: Collection[str], *, facts: Callable[[Fields], _Facts | None], files: Collection[Path]
) -> dict[str, _Facts]:
    """What `facts` keeps of every object of these types, by the object's id; None keeps nothing.

    Raises:
        KnowledgeError: a file is damaged or is no STIX, or an object is there twice with different content.
    """
    kept: dict[str, tuple[str, _Facts]] = {}
    for fields in _objects(files, types):
        found = facts(fields)
        if found is None:
            continue
        id_, modified = fields.text("id"), fields.said("modified")
        former = kept.get(id_)
        if former and former[0] == modified and former[1] != found:
            raise KnowledgeError(f"{id_} is there twice, with different content", where=str(path))
        if former is None or modified > former[0]:
            kept[id_] = (modified, found)
    return {id_: found for id_, (_, found) in kept.items()}


def external_ids(fields: Fields, source: str) -> tuple[str, ...]:
    """What a catalogue calls an object, or what it refers to in another one; each once.

    Raises:
        KnowledgeError: the references are no list of objects.
    """
    references = fields.objects("external_references")
    return tuple(dict.fromkeys(one.text("external_id") for one in references if one.said("source_name") == source))


def plain(text: str) -> str:
    """A description on one line, without citations, links and tags."""
    return " ".join(_LINK.sub(r"\1", _CITATION.sub("", _TAG.sub(" ", text))).split())


def _objects(files: Collection[Path], types: Collection[str]) -> Iterator[Fields]:
    for file in files:
        named, mark, _ = file.name.partition("--")
        if not mark or named in types:  # a file of one object is named after it
            yield from (fields for fields in _read(file) if fields.text("type") in types)


def _read(file: Path) -> Iterator[Fields]:
    """Every object of a file, without the bundle around them."""
    for key, values in json_records(file, {_OBJECTS}):
        fields = Fields(values, str(file), _name(values))
        if key or fields.text("type") != _BUNDLE:
            yield fields
        elif _OBJECTS in values:
            raise fields.wrong(_OBJECTS, "a list")


def _name(values: dict[str, Any]) -> str:
    """What an error calls an object: the catalogue's id for it, else its own."""
    references = values.get("external_references")
    first = references[0] if isinstance(references, list) and references else None
    external = first.get("external_id") if isinstance(first, dict) else None
    return next((name[:80] for name in (external, values.get("id")) if isinstance(name, str) and name), "an object")
