"""The CWE list as JSON, in the form of its REST API (https://github.com/CWE-CAPEC/REST-API-wg).

One bundle of `Weaknesses`, `Categories` and `Views`; an array or lines of their entries; or a folder of such files,
down to one entry a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from casemate.errors import KnowledgeError
from casemate.knowledge.feeds import cwe, packed
from casemate.knowledge.feeds.fields import Fields
from casemate.knowledge.feeds.streams import json_records
from casemate.knowledge.node import Kind, Record

_LISTS = ("Weaknesses", "Categories", "Views")
_SHAPES = {"Description": Kind.WEAKNESS, "Summary": Kind.CATEGORY, "Objective": Kind.VIEW}
"""Each kind of entry by the text that only it has."""
_MEMBERS = ("Relationships", "Members")
_ENTRY = re.compile(r'\s*[\[{].*"ID"\s*:\s*"\d+"', re.DOTALL)
_OURS = re.compile(r'"(?:MappingNotes|ContentHistory|RelatedWeaknesses|ContentVersion)"\s*:\s*[\[{"]')
_BULLET = re.compile(r"^\s*- ", re.MULTILINE)
"""How a list's items are marked in this form alone."""
_VERSION = re.compile(r"\d+(?:\.\d+)+", re.ASCII)


def recognises(path: Path) -> bool:
    """Whether a file begins like entries of the CWE list, or the files of a folder all do."""
    heads = [packed.head(file, suffix=".json") for file in packed.samples(path, packed.JSON_ENDINGS)]
    return bool(heads) and all(_OURS.search(head) for head in heads) and any(_ENTRY.match(head) for head in heads)


def read(path: Path) -> Iterator[Record]:
    """Every weakness, category and view, live or not, with its names, relations, patterns and observed examples.

    Raises:
        KnowledgeError: a file is damaged or is not of the CWE list, which names entry or line; or no file and no name
            tells the version.
    """
    files = packed.files_of(path, packed.JSON_ENDINGS)
    entries: list[cwe.Entry] = []
    versions: set[str] = set()
    for file in files:
        for key, values in json_records(file, _LISTS):
            if key or "ID" in values:
                entries.append(_entry(Fields(values, str(file), f"CWE-{str(values.get('ID', '?'))[:20]}")))
            else:
                versions.add(_version(Fields(values, str(file), "the bundle")))
    if not entries:
        raise KnowledgeError("holds no weakness", where=str(path))
    version = packed.version(path, versions, files=files, such_as="cwe-4.19.1.json")
    yield from cwe.records(path, entries, version=version)


def _version(rest: Fields) -> str:
    """The version that stands beside the lists."""
    for key in _LISTS:
        if key in rest.values:
            raise rest.wrong(key, "a list of entries")
    if "ContentVersion" not in rest.values:
        raise KnowledgeError("holds an object that is no entry of the CWE list", where=rest.where)
    return rest.line("ContentVersion", _VERSION)


def _entry(fields: Fields) -> cwe.Entry:
    number, kind = fields.text("ID"), next((key for key in _SHAPES if key in fields.values), "")
    if not kind:
        raise fields.complaint("is neither weakness, category nor view")
    related = fields.objects("RelatedWeaknesses")
    return cwe.Entry(
        number=number,
        kind=_SHAPES[kind],
        name=_line(fields.text("Name")),
        status=fields.text("Status"),
        text=_line(fields.said(kind)),
        abstraction=fields.said("Abstraction"),
        usage=_line(fields.inner("MappingNotes").said("Usage")),
        terms=tuple(_line(term.text("Term")) for term in fields.objects("AlternateTerms")),
        related=tuple((one.text("Nature"), one.text("CweID"), one.said("ViewID")) for one in related),
        members=tuple(one.text("CweID") for key in _MEMBERS for one in fields.objects(key)),
        patterns=fields.texts("RelatedAttackPatterns"),
        mitigations=_pairs(fields, "PotentialMitigations", keys=("Strategy", "Description")),
        examples=_pairs(fields, "ObservedExamples", keys=("Reference", "Description")),
    )


def _pairs(fields: Fields, key: str, *, keys: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    first, second = keys
    return tuple((_line(one.said(first)), _line(one.said(second))) for one in fields.objects(key))


def _line(text: str) -> str:
    return " ".join(_BULLET.sub("", text).split())
