"""Bytes of a log as numbered pieces, in constant memory.

A log comes as it was written: in UTF-8, in UTF-16 by a redirect on Windows, with NULs, with the colours of a terminal,
with progress bars that redraw one line a thousand times, with one line of a gigabyte. A piece is what can be matched:
a line, a redraw of a line, or a stretch of a line that is too long. Line numbers count line feeds, as editors do;
carriage returns in a log that has nothing else.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Protocol

from casemate.errors import UsageError

LONGEST_PIECE_BYTES = 8192
"""A longer line is looked at in stretches of this size."""

_CHUNK_BYTES = 1 << 20
_OVERLAP_BYTES = 512
_TELLING_BYTES = 1 << 16
"""A log without one line feed in so many bytes ends its lines otherwise: with carriage returns, or not at all."""
_BAR = b"0123456789:.,%#|=>-? \xe2\x96\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f"
"""Bytes that move while a progress bar is drawn again: figures, and the pieces of its bar."""

_MAGIC = {
    b"\x1f\x8b": ("gzip", "zcat"),
    b"\x28\xb5\x2f\xfd": ("zstd", "zstdcat"),
    b"\xfd7zXZ\0": ("xz", "xzcat"),
    b"BZh": ("bzip2", "bzcat"),
    b"PK\x03\x04": ("zip", "unzip -p"),
}
_SIXTEEN = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[@-Z\\^_])")


class Readable(Protocol):
    """Where bytes come from: an open file, or standard input."""

    def read(self, size: int, /) -> bytes:
        """Up to `size` bytes; empty at the end."""


def pieces(stream: Readable, name: str = "") -> Iterator[tuple[int, bytes]]:
    """Each piece of a log with its line's number (from 1), without line ends, colours and NULs.

    Raises:
        UsageError: the bytes are compressed.
    """
    number, rest = 1, b""
    for chunk in _plain(stream, name):
        whole, end, tail = chunk.rpartition(b"\n")
        rest += whole if end else tail
        if end:
            block = _bare(rest.replace(b"\r\n", b"\n").rstrip(b"\r"))
            yield from _numbered(block, number)
            number, rest = number + block.count(b"\n") + 1, tail
        elif len(rest) > _CHUNK_BYTES:  # a line without end
            yield from ((number, part) for part in _parts(_bare(rest)))
            rest = rest[-_OVERLAP_BYTES:]
    if rest:
        yield from ((number, part) for part in _parts(_bare(rest)))


def text_of(piece: bytes) -> str:
    """The piece as text: UTF-8, or Latin-1 where it is not; a character cut at an end of a stretch is dropped."""
    try:
        return piece.decode()
    except UnicodeDecodeError as error:
        cut = len(piece) >= LONGEST_PIECE_BYTES - 4
        return piece.decode(errors="ignore") if cut or error.start > len(piece) - 4 else piece.decode("latin-1")


def refuse_compressed(head: bytes, name: str) -> None:
    """Raise a UsageError that names the tool which unpacks, if the first bytes are those of a compressed file."""
    for magic, (form, tool) in _MAGIC.items():
        if head.startswith(magic):
            source = "FILE" if name in ("", "-") else name
            remedy = f"{tool} {source} | casemate doctor --log -"
            raise UsageError(f"the log is compressed ({form})", where=name, remedy=remedy)


def _plain(stream: Readable, name: str) -> Iterator[bytes]:
    """Chunks in UTF-8 (or in an 8-bit code), without NULs."""
    chunk = stream.read(_CHUNK_BYTES)
    refuse_compressed(chunk, name)
    while 0 < len(chunk) < len(codecs.BOM_UTF8) and (more := stream.read(_CHUNK_BYTES)):
        chunk += more
    sixteen = _SIXTEEN.get(chunk[:2])
    decoder = codecs.getincrementaldecoder(sixteen)(errors="replace") if sixteen else None
    chunk = chunk[2:] if sixteen else chunk.removeprefix(codecs.BOM_UTF8)
    while b"\n" not in chunk and len(chunk) < _TELLING_BYTES and (more := stream.read(_CHUNK_BYTES)):
        chunk += more
    only_returns = chunk.count(b"\r") > 1 and b"\n" not in chunk and b"%|" not in chunk
    while chunk:
        if decoder is not None:
            chunk = decoder.decode(chunk).encode(errors="replace")
        if only_returns:
            chunk = chunk.replace(b"\r", b"\n")
        yield chunk.replace(b"\0", b"") if b"\0" in chunk else chunk
        chunk = stream.read(_CHUNK_BYTES)


def _numbered(block: bytes, number: int) -> Iterator[tuple[int, bytes]]:
    broken = b"\r" in block
    for line in block.split(b"\n"):
        if broken or len(line) > LONGEST_PIECE_BYTES:
            for part in _parts(line):
                yield number, part
        else:
            yield number, line
        number += 1


def _bare(block: bytes) -> bytes:
    return _ESCAPES.sub(b"", block) if b"\x1b" in block else block


def _parts(line: bytes) -> Iterator[bytes]:
    before = None
    for redraw in line.split(b"\r"):
        drawn = redraw.translate(None, _BAR)
        if drawn == before:
            continue  # the same bar, further on
        before = drawn
        if len(redraw) <= LONGEST_PIECE_BYTES:
            yield redraw
            continue
        for start in range(0, len(redraw), LONGEST_PIECE_BYTES - _OVERLAP_BYTES):
            yield redraw[start : start + LONGEST_PIECE_BYTES]
