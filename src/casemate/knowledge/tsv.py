"""Tables that ship with the package: tab-separated, a head line, no quoting."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable

CURATED = "casemate.knowledge.curated"
FACTS = "casemate.knowledge.facts"


def rows(package: str, name: str) -> Iterator[dict[str, str]]:
    """The rows of a table as head → cell."""
    text = (resources.files(package) / name).read_text(encoding="utf-8")
    yield from csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)


def listed(cell: str) -> tuple[str, ...]:
    """The items of a comma-separated cell."""
    return tuple(cell.split(",")) if cell else ()


def shipped() -> Iterator[Traversable]:
    """Every curated table and dossier, in one order on every machine."""
    yield from _files(resources.files(CURATED))


def _files(folder: Traversable) -> Iterator[Traversable]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _files(entry)
        elif entry.name.endswith((".tsv", ".toml")):
            yield entry
