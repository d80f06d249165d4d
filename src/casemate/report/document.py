"""A report as a value: what is said, without how it looks. Renderers: `text`, `markdown`, `html`.

Prose may hold `code` in backticks; nothing else in a text is markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar

from casemate.report.visible import visible

Tone = Literal["good", "bad", "warn", "note"]
"""What a verdict feels like: clean, found, incomplete, plain information."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The one sentence a reader in a hurry takes away."""

    tone: Tone
    text: str


@dataclass(frozen=True, slots=True)
class Figure:
    """A named number or fact."""

    label: str
    value: str


@dataclass(frozen=True, slots=True)
class Figures:
    """Named facts, side by side."""

    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a header; every row has as many cells as the header."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Verbatim text. `caption` names it (empty: none); `language` is a hint for readers (`python`)."""

    text: str
    caption: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class Quote:
    """Words that are not ours; `speaker` says whose."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Links:
    """Addresses to read further. Shown in full; only http and https become links."""

    label: str
    addresses: tuple[str, ...]


Block = Paragraph | Verdict | Figures | Table | Code | Quote | Links


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part; `sections` are its sub-sections (one level)."""

    title: str
    blocks: tuple[Block, ...] = ()
    sections: tuple[Section, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report; `language` is its BCP 47 tag, `lead` what stands before the first section."""

    title: str
    sections: tuple[Section, ...] = ()
    lead: tuple[Block, ...] = ()
    language: str = "en"


T = TypeVar("T")

_CODE_SPAN = re.compile(r"`([^`\n]+)`")


def shown(value: T) -> T:
    """The same value with every text in it made visible; what a renderer does first."""
    return _shown(value)  # type: ignore[no-any-return]  # a walk over any value cannot be typed


def spans(text: str) -> Iterator[tuple[str, bool]]:
    """The pieces of a prose text in order, each with whether it is code."""
    end = 0
    for match in _CODE_SPAN.finditer(text):
        if match.start() > end:
            yield text[end : match.start()], False
        yield match.group(1), True
        end = match.end()
    if end < len(text):
        yield text[end:], False


def one_line(text: str) -> str:
    """The text with white space folded, for titles and table cells."""
    return " ".join(text.split())


def is_link(address: str) -> bool:
    """Whether an address may become a link: http or https, and nothing in it that could end it."""
    return re.fullmatch(r"https?://[^\s<>\"'`\\]+", address) is not None


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, tuple):
        return tuple(_shown(item) for item in value)
    return replace(value, **{field.name: _shown(getattr(value, field.name)) for field in fields(value)})
