"""Bytes to text, as the file itself has it. Pure.

A reading that is only a guess is said: whoever reads the report must know that names in it may look odd.
"""

from __future__ import annotations

import codecs
import io
import tokenize
import unicodedata
from dataclasses import dataclass

SNIFF_BYTES = 4096
"""How much of a file's beginning is looked at to tell what it is."""
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WIDE = {
    "utf-32-le": (4, (1, 2, 3)),
    "utf-32-be": (4, (0, 1, 2)),
    "utf-16-le": (2, (1,)),
    "utf-16-be": (2, (0,)),
}
"""Encodings with wide units: bytes a character, and which of them are null where the text is mostly ASCII."""
_COMMON = 0.7
"""Share of a text's double bytes that must be everyday Chinese, for it to be Chinese and not a Western single byte."""


@dataclass(frozen=True, slots=True)
class Text:
    """A file's text, and what must be said of how it was had (empty: the file says it itself, or it is UTF-8)."""

    text: str
    remark: str = ""


def decode(data: bytes) -> Text:
    """A file's text by its BOM, its coding line (PEP 263), UTF-8, wide characters without a BOM, GB 18030 or Latin-1.

    Raises:
        ValueError: its BOM promises what the bytes do not hold.
    """
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return Text(data.decode(encoding))
    for encoding in (_declared(data), "utf-8", wide(data)):
        text = _read(data, encoding) if encoding else None
        if text is not None and ("\0" not in text or not wide(data)):
            return Text(text)
    chinese = _read(data, "gb18030")
    if chinese is not None and _is_chinese(chinese):
        return Text(chinese, "no encoding declared, read as GB 18030")
    return Text(data.decode("latin-1"), "no encoding declared and not UTF-8, read as Latin-1")


def is_binary(head: bytes) -> bool:
    """Whether a file that begins so is no text: it holds nulls that no wide encoding explains."""
    return b"\0" in head and not any(head.startswith(bom) for bom, _ in _BOMS) and not wide(head)


def wide(data: bytes) -> str:
    """The encoding with wide characters that text without a BOM has; empty where it has none.

    It shows as nulls in the same bytes of nearly every character.
    """
    head = data[:SNIFF_BYTES]
    for encoding, (unit, empty) in _WIDE.items():
        characters = len(head) // unit
        if characters and all(head[at : characters * unit : unit].count(0) > characters * 0.7 for at in empty):
            return encoding
    return ""


def _read(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeError, LookupError):
        return None


def _declared(data: bytes) -> str:
    """The encoding that the first two lines declare; empty where there is none or it is unknown."""
    head = data[:SNIFF_BYTES].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        encoding, lines = tokenize.detect_encoding(io.BytesIO(head).readline)
    except (SyntaxError, UnicodeDecodeError):
        return ""
    return encoding if any(b"coding" in line for line in lines) else ""


def _is_chinese(text: str) -> bool:
    """Whether GB 18030 is what the bytes mean: every character is assigned, and most are everyday ones.

    In Western text a high byte stands alone between letters, or two of them make a character that nobody writes.
    """
    pairs = common = 0
    for character in text:
        if character.isascii():
            continue
        if unicodedata.category(character) in {"Cn", "Co", "Cs"}:
            return False
        code = character.encode("gb18030")
        pairs += 1
        common += len(code) == 2 and code[1] >= 0xA1 and (0xB0 <= code[0] <= 0xD7 or 0xA1 <= code[0] <= 0xA3)
    return pairs > 0 and common >= pairs * _COMMON
