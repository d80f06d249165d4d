"""Shared libraries with device code, made of headers alone: what nvcc and the linker would write around it."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from casemate.doctor.fatbin import MAGIC

PTX, CUBIN = 1, 2
CHIP, FAMILY = 1 << 20, 1 << 21
Entry = tuple[int, int, int]
"""Kind, architecture, flags."""


def region(entries: Sequence[Entry], *, code: int = 40) -> bytes:
    """A fat binary with made-up code of so many bytes an entry."""
    body = b"".join(
        struct.pack("<HHIQIIHHIIIQ", kind, 0x101, 64, code, code, 0, 8, 1, arch, 0, 0, flags | 0x8011).ljust(64, b"\0")
        + bytes(code)
        for kind, arch, flags in entries
    )
    return struct.pack("<IHHQ", MAGIC, 1, 16, len(body)) + body


def elf(sections: dict[str, bytes]) -> bytes:
    """A shared library of nothing but these sections."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in (*sections, ".shstrtab"))
    bodies = [*sections.values(), names]
    table, place = [bytes(64)], 64
    for name, body in zip((*sections, ".shstrtab"), bodies, strict=True):
        at = names.index(b"\0" + name.encode() + b"\0") + 1
        table.append(struct.pack("<IIQQQQ", at, 1, 0, 0, place, len(body)).ljust(64, b"\0"))
        place += len(body)
    head = b"\x7fELF\x02\x01\x01".ljust(0x28, b"\0") + struct.pack(
        "<QIHHHHHH", place, 0, 64, 0, 0, 64, len(table), len(bodies)
    )
    return head.ljust(64, b"\0") + b"".join(bodies) + b"".join(table)
