"""Dossiers: what we know about a weakness, in our own words and both languages; one file each, checked by a schema."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from casemate.knowledge.tsv import CURATED


@dataclass(frozen=True, slots=True)
class Prose:
    """One language's half.

    `triggers` say what the code looks like where the weakness is, `safe` what looks alike and is none, `symptoms` how
    somebody who does not know the name describes it, `test` how to test for it.
    """

    description: str
    triggers: tuple[str, ...]
    safe: tuple[str, ...]
    symptoms: tuple[str, ...]
    test: str
    aliases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A program with the weakness and its repaired twin; `detect` is a regular expression that tells them apart."""

    language: str
    bad: str
    good: str
    fix_en: str
    fix_zh: str
    detect: str


@dataclass(frozen=True, slots=True)
class Case:
    """A real vulnerability of this weakness."""

    id: str
    what_en: str
    what_zh: str


@dataclass(frozen=True, slots=True)
class Dossier:
    """Everything curated about one weakness."""

    cwe: str
    en: Prose
    zh: Prose
    examples: tuple[Example, ...]
    cves: tuple[Case, ...]


@cache
def dossier(cwe: str) -> Dossier | None:
    """The dossier of a weakness; None if none is written."""
    file = resources.files(CURATED) / "dossiers" / f"{cwe}.toml"
    return _read(tomllib.loads(file.read_text(encoding="utf-8"))) if file.is_file() else None


def every() -> Iterator[Dossier]:
    """Every dossier, by number."""
    names = [entry.name.removesuffix(".toml") for entry in (resources.files(CURATED) / "dossiers").iterdir()]
    for cwe in sorted(names, key=lambda name: int(name.rpartition("-")[2])):
        if found := dossier(cwe):
            yield found


def _read(data: dict[str, Any]) -> Dossier:
    return Dossier(
        data["cwe"],
        _prose(data["en"]),
        _prose(data["zh"]),
        tuple(Example(**example) for example in data["example"]),
        tuple(Case(**case) for case in data["cve"]),
    )


def _prose(half: dict[str, Any]) -> Prose:
    told: dict[str, Any] = {field: tuple(value) if isinstance(value, list) else value for field, value in half.items()}
    return Prose(**told)
