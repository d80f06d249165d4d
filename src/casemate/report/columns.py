"""Terminal cells: East Asian wide characters take two, combining ones none."""

from __future__ import annotations

import re
import unicodedata

_WIDE = r"\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60"
_PIECE = re.compile(rf"[ \t]+|[{_WIDE}][、。，．：；！？）」』】]*|[^ \t{_WIDE}]+")
"""Where a line may break: at white space, and around each wide character (but not before closing punctuation)."""


def cells(text: str) -> int:
    """How many terminal cells the text takes."""
    if text.isascii():
        return len(text)
    return sum(_cell(character) for character in text)


def padded(text: str, width: int) -> str:
    """The text with spaces after it up to `width` cells."""
    return text + " " * max(0, width - cells(text))


def wrapped(text: str, width: int) -> list[str]:
    """The text as lines of at most `width` cells; its own line ends stay, a longer word is broken. Never empty."""
    return [line for paragraph in text.split("\n") for line in _wrapped(paragraph, max(2, width))]


def _wrapped(text: str, width: int) -> list[str]:
    lines = [""]
    used = 0
    for piece in _pieces(text, width):
        size = cells(piece)
        if used + size > width and lines[-1]:
            lines[-1] = lines[-1].rstrip()
            lines.append("")
            used = 0
        if not piece.isspace() or lines[-1]:
            lines[-1] += piece
            used += size
    return [line.rstrip() for line in lines]


def _pieces(text: str, width: int) -> list[str]:
    pieces: list[str] = []
    for piece in _PIECE.findall(text):
        while cells(piece) > width and len(piece) > 1:
            head = _head(piece, width)
            pieces.append(piece[:head])
            piece = piece[head:]  # noqa: PLW2901 - the rest of the same word
        pieces.append(piece)
    return pieces


def _head(piece: str, width: int) -> int:
    used = 0
    for position, character in enumerate(piece):
        used += _cell(character)
        if used > width:
            return max(1, position)
    return len(piece)


def _cell(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
