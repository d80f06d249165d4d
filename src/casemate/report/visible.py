"""Makes characters that a terminal or an editor would obey, or hide, visible.

Control characters move cursors and rewrite screens; bidi overrides and zero-width characters make code read other than
it runs (CVE-2021-42574). Reports quote foreign text, so every renderer shows such characters as themselves.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

_KEPT = frozenset("\n\t")
_PICTURE_OF_DELETE = "\u2421"


def visible(text: str) -> str:
    """The text with control characters as their pictures (`␛`) and other invisible ones as `⟨U+202E⟩`.

    Tabs and line ends stay; Windows line ends become plain ones.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character) for character in text.replace("\r\n", "\n"))


def as_json(value: Any, *, compact: bool = False) -> str:
    """A JSON text that is exact and yet safe to print: invisible characters stand as hexadecimal escapes.

    Indented for readers; `compact`, which takes a tenth of the time, for files that only programs read.
    """
    text = json.dumps(value, ensure_ascii=False, **_COMPACT if compact else _INDENTED)
    return text if text.isascii() else _NOT_ASCII.sub(_escaped, text)


_INDENTED: dict[str, Any] = {"indent": 2}
_COMPACT: dict[str, Any] = {"separators": (",", ":")}
_NOT_ASCII = re.compile(r"[^\x00-\x7e]")


def _shown(character: str) -> str:
    if character in _KEPT or not _is_invisible(character):
        return character
    point = ord(character)
    if point < 0x20:
        return chr(0x2400 + point)
    return _PICTURE_OF_DELETE if point == 0x7F else f"⟨U+{point:04X}⟩"


def _is_invisible(character: str) -> bool:
    # Control, format (bidi, zero width, tags), lone surrogates, and the two separators that some take as line ends.
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    return json.dumps(character)[1:-1] if _is_invisible(character) else character
