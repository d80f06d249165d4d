"""For which cards a compiled library holds code, read from its fat binaries' headers and nothing else.

nvcc puts every kernel of an ELF file into a section `.nv_fatbin` (or `__nv_relfatbin`) as regions of entries, one for
each architecture. The code is compressed; the headers are not: we hop from header to header and never touch the code,
so a library of a gigabyte costs some thousand small reads. The layout is not documented by NVIDIA. It was worked out in
public (github.com/n-eiling/cuda-fatbin-decompression); the bits for `a` and `f` were found by unpacking the cubins of
vLLM 0.33.0 and holding each entry's flags against the `-arch` that the compiler had noted inside.
"""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from casemate.errors import CasemateError

SECTIONS: Final = (".nv_fatbin", "__nv_relfatbin")
MAGIC: Final = 0xBA55ED50

_ELF_64_LITTLE: Final = b"\x7fELF\x02\x01"
_SECTION = struct.Struct("<IIQQQQ")
_REGION = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQ")
_DYNAMIC = struct.Struct("<QQ")
_PTX, _CUBIN = 1, 2
_THIS_CHIP_ALONE: Final = 1 << 20
_THIS_FAMILY: Final = 1 << 21
_MOST_SECTIONS: Final = 10_000
_MOST_ENTRIES: Final = 200_000
_MOST_NAMES: Final = 1 << 20
_PADDING: Final = 8
_MOST_DYNAMIC: Final = _DYNAMIC.size * 4096
_NEEDED: Final = 1
_RUNTIME = re.compile(rb"libcudart\.so\.(\d+)")


def capabilities(path: Path, *, deadline: float) -> tuple[str, ...]:
    """The compute capabilities that a library has code for, as torch writes them.

    Args:
        path: an ELF file.
        deadline: when to give up, on the clock of `time.monotonic`.

    Returns:
        `9.0`, `9.0a` (this chip alone), `10.0f` (its family), `8.0+PTX` (the driver compiles it for 8.0 and later);
        in rising order. Empty if there is no device code inside.

    Raises:
        CasemateError: it cannot be read, is no ELF file of 64 bits, is broken, or took too long.
    """
    try:
        with path.open("rb") as file:
            found = set(_entries(file, deadline))
    except OSError as error:
        raise CasemateError(error.strerror or "cannot be read") from error
    except (struct.error, ValueError) as error:
        raise CasemateError("its fat binary is broken") from error
    return tuple(_written(arch, mark) for arch, mark in sorted(found))


def runtime(path: Path) -> int | None:
    """The major version of the CUDA runtime that a library asks the loader for; None if it asks for none."""
    try:
        with path.open("rb") as file:
            asked = [match for name in _needed(file) if (match := _RUNTIME.match(name))]
    except (OSError, struct.error, CasemateError):
        return None
    return int(asked[0][1]) if asked else None


def _needed(file: BinaryIO) -> Iterator[bytes]:
    """The libraries that a library asks for."""
    places = {name: (start, size) for name, start, size in _sections(file)}
    names_at, _ = places.get(".dynstr", (0, 0))
    start, size = places.get(".dynamic", (0, 0))
    for tag, value in _DYNAMIC.iter_unpack(_at(file, start, size=min(size, _MOST_DYNAMIC))):
        if tag == _NEEDED:
            yield _at(file, names_at + value, size=64)


def _entries(file: BinaryIO, deadline: float) -> Iterator[tuple[int, str]]:
    """Architecture (90) and mark of every entry of every region."""
    count = 0
    for place, end in _regions(file):
        inside = place
        while inside + _ENTRY.size <= end:
            count += 1
            if count > _MOST_ENTRIES or time.monotonic() > deadline:
                raise CasemateError("it holds too much code to list in time")
            kind, _, head, size, *_, arch, _, _, flags = _ENTRY.unpack(_at(file, inside, size=_ENTRY.size))
            if head < _ENTRY.size:
                raise ValueError("an entry without a header")
            if kind in (_PTX, _CUBIN):
                yield arch, _mark(kind, flags)
            inside += head + size


def _regions(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """Start and end of the entries of every region."""
    for start, size in (section[1:] for section in _sections(file) if section[0] in SECTIONS):
        place, end = start, start + size
        while place + _REGION.size <= end:
            magic, _, head, length = _REGION.unpack(_at(file, place, size=_REGION.size))
            if magic == MAGIC:
                yield place + head, min(place + head + length, end)
                place += head + length
            else:  # regions are aligned, some with gaps between them
                place += _PADDING


def _sections(file: BinaryIO) -> list[tuple[str, int, int]]:
    """Name, place and size of every section."""
    head = file.read(64)
    if not head.startswith(_ELF_64_LITTLE):
        raise CasemateError("it is no ELF file of 64 bits")
    (table,) = struct.unpack_from("<Q", head, 0x28)
    size, count, of_names = struct.unpack_from("<HHH", head, 0x3A)
    if size < _SECTION.size or not 0 < count <= _MOST_SECTIONS or of_names >= count:
        raise CasemateError("it has no table of sections")
    raw = _at(file, table, size=size * count)
    sections = [_SECTION.unpack_from(raw, place * size) for place in range(count)]
    _, _, _, _, names_at, names_size = sections[of_names]
    names = _at(file, names_at, size=min(names_size, _MOST_NAMES))
    return [(_name(names, name), start, length) for name, _, _, _, start, length in sections]


def _name(names: bytes, start: int) -> str:
    return names[start : names.find(b"\0", start)].decode(errors="replace")


def _at(file: BinaryIO, place: int, *, size: int) -> bytes:
    file.seek(place)
    return file.read(size)


def _mark(kind: int, flags: int) -> str:
    if kind == _PTX:
        return "+PTX"
    return "a" if flags & _THIS_CHIP_ALONE else "f" if flags & _THIS_FAMILY else ""


def _written(arch: int, mark: str) -> str:
    return f"{arch // 10}.{arch % 10}{mark}"
