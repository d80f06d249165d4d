"""A report as a value: what is said, without how it looks. Renderers: `text`, `markdown`, `html`.

Prose may hold `code` in backticks; nothing else in a text is markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
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
class Mark:
    """What is pointed at in numbered code: lines as they are numbered, columns from 1, the end exclusive.

    Without columns (0) whole lines are meant.
    """

    line: int
    end_line: int
    column: int = 0
    end_column: int = 0


@dataclass(frozen=True, slots=True)
class Code:
    """Verbatim text. `caption` names it (empty: none); `language` is a hint for readers (`python`).

    `first` is the number of its first line (0: the lines are not numbered), `mark` what is pointed at.
    """

    text: str
    caption: str = ""
    language: str = ""
    first: int = 0
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """Code before and after; shown line by line as taken away and added."""

    before: str
    after: str
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One of several things in order: where, what, the code there (empty: none), and the section that tells more."""

    place: str
    note: str
    code: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class Steps:
    """Numbered steps."""

    steps: tuple[Step, ...]
    caption: str = ""


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


@dataclass(frozen=True, slots=True)
class Fold:
    """What most readers pass over: a page shows the title until it is opened, elsewhere it stands in full."""

    title: str
    blocks: tuple[Block, ...]


Block = Paragraph | Verdict | Figures | Table | Code | Change | Steps | Quote | Links | Fold


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part; `sections` are its sub-sections (one level).

    `anchor` is a name to lead to. `kind` sorts sub-sections, and `filters` are the kinds that a page offers to show
    alone, each with its label; the first, of the empty kind, shows all.
    """

    title: str
    blocks: tuple[Block, ...] = ()
    sections: tuple[Section, ...] = ()
    anchor: str = ""
    kind: str = ""
    filters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report; `language` is its BCP 47 tag, `lead` what stands before the first section.

    `contents` is the title of the list of sections with an anchor (empty: a page has none).
    """

    title: str
    sections: tuple[Section, ...] = ()
    lead: tuple[Block, ...] = ()
    language: str = "en"
    contents: str = ""


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
    if not is_dataclass(value) or isinstance(value, type):
        return value
    return replace(value, **{field.name: _shown(getattr(value, field.name)) for field in fields(value)})
