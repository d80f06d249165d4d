"""What a model folder says of its licence: the model card's front matter, licence files, the config. Nothing is judged.

The card's keys are the hub's (https://huggingface.co/docs/hub/model-cards): `license`, and for `other` a
`license_name`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from casemate.checkpoint.jsonscan import shown
from casemate.checkpoint.listing import Listing, opened
from casemate.errors import UsageError

_MOST_BYTES = 1 << 16
_FILE = re.compile(r"(?:licen[cs]e|copying)(?:[-_.].*)?", re.IGNORECASE)
_KEY = re.compile(r"(license|license_name)\s*:\s*(.*)")
_KNOWN = (
    ("Apache-2.0", re.compile(r"Apache License\s+Version 2\.0, January 2004")),
    ("MIT", re.compile(r"Permission is hereby granted, free of charge, to any person obtaining a copy")),
    ("AGPL-3.0", re.compile(r"GNU AFFERO GENERAL PUBLIC LICENSE\s+Version 3")),
    ("GPL-3.0", re.compile(r"GNU GENERAL PUBLIC LICENSE\s+Version 3")),
    ("BSD-3-Clause", re.compile(r"Neither the name of .{1,200} nor the names of its\s+contributors", re.DOTALL)),
)
"""Phrases that stand in one licence only, and its SPDX identifier."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What one source says the licence is: an identifier, or a licence file's first line."""

    source: str
    says: str


def statements(listing: Listing, config: Mapping[str, object]) -> tuple[Statement, ...]:
    """Every statement in the folder, the model card's first; empty where nothing is said."""
    return tuple(_statements(listing, config))


def _statements(listing: Listing, config: Mapping[str, object]) -> Iterator[Statement]:
    for name in listing.files:
        if name.lower() == "readme.md" and (said := _of_card(_text(listing.path / name))):
            yield Statement(name, said)
    for name in listing.files:
        if _FILE.fullmatch(name) and (said := _of_text(_text(listing.path / name))):
            yield Statement(name, said)
    told = config.get("license")
    if isinstance(told, str) and told.strip():
        yield Statement("config.json", shown(told.strip()))


def _text(path: Path) -> str:
    try:
        with opened(path) as file:
            return file.read(_MOST_BYTES).decode(errors="replace")
    except UsageError:  # then it says nothing; that it cannot be read is told by `verify`
        return ""


def _of_card(text: str) -> str:
    """The licence in the YAML block that opens a card. Only two flat keys are wanted, so no YAML is parsed."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---":
        return ""
    found: dict[str, str] = {}
    for at, line in enumerate(lines[1:], start=1):
        if line.rstrip() in ("---", "..."):
            break
        if match := _KEY.fullmatch(line.rstrip()):
            following = [item.strip()[2:] for item in _items(lines[at + 1 :])]
            found[match[1]] = _bare(match[2]) or ", ".join(map(_bare, following))
    named = found.get("license_name", "")
    return shown(named if named and found.get("license", "other") == "other" else found.get("license", ""))


def _items(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if not line.strip().startswith("- "):
            return
        yield line


def _bare(value: str) -> str:
    return value.partition(" #")[0].strip().strip("[]").strip().strip("'\"")


def _of_text(text: str) -> str:
    title = next((bare for line in text.splitlines() if (bare := line.strip(" #*\t"))), "")
    if "modified" not in title.lower():
        for identifier, phrase in _KNOWN:
            if phrase.search(text):
                return identifier
    return shown(title)
