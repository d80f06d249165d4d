"""One tensor's entry in a safetensors header: its data type, shape and place, checked against each other."""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod

from casemate.checkpoint.jsonscan import Cursor, Malformed, shown

BITS = {
    "BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
    "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip
"""Bits of one number of each data type (safetensors 0.8)."""

_MOST_OTHER_BYTES = 1 << 12
_SPACE = r"[ \t\n\r]*+"
_NUMBER = r"(?:0|[1-9][0-9]{0,18})"
_COMMA = f"{_SPACE},{_SPACE}"
_DTYPE = r'"([A-Z0-9_]{1,16})"'
_SHAPE = rf"\[{_SPACE}((?:{_NUMBER}(?:{_COMMA}{_NUMBER}){{0,63}})?){_SPACE}\]"
_OFFSETS = rf"\[{_SPACE}({_NUMBER}){_COMMA}({_NUMBER}){_SPACE}\]"
_FORMS = {"dtype": _DTYPE, "shape": _SHAPE, "data_offsets": _OFFSETS}
_FIELDS = {key: re.compile((_SPACE + form).encode()) for key, form in _FORMS.items()}
_MEMBERS = _COMMA.join(f'"{key}"{_SPACE}:{_SPACE}{form}' for key, form in _FORMS.items())
_ENTRY = re.compile(rf"{_SPACE}\{{{_SPACE}{_MEMBERS}{_SPACE}\}}".encode())
"""The form that every writer of today gives an entry; one that is written otherwise is taken field by field."""


def entry(cursor: Cursor) -> tuple[str, tuple[int, ...], int, int]:
    """Take an entry: data type, shape, and where the data begins and ends, in bytes from the first tensor's.

    Raises:
        Malformed: it is not of the form, of an unknown data type, or its shape does not fit its bytes.
    """
    match = cursor.take(_ENTRY)
    dtype, shape, start, end = match.groups() if match else _field_by_field(cursor)
    known, dimensions, size_bytes = _sized(dtype, shape)
    place = int(start), int(end)
    if place[1] < place[0]:
        raise Malformed("it ends before it begins")
    if place[1] - place[0] != size_bytes:
        numbers = "x".join(map(str, dimensions)) or "one"
        raise Malformed(f"{numbers} numbers of {known} are {size_bytes} bytes, not {place[1] - place[0]}")
    return known, dimensions, *place


def _field_by_field(cursor: Cursor) -> tuple[bytes, ...]:
    found: dict[str, tuple[bytes, ...]] = {}
    for key in cursor.members():
        if key not in _FIELDS:
            cursor.anything(most_bytes=_MOST_OTHER_BYTES)  # the format lets readers pass over what they do not know
            continue
        match = cursor.take(_FIELDS[key])
        if match is None:
            raise Malformed(f"its {key} is not of the right form at byte {cursor.at}")
        found[key] = match.groups()
    for key in _FIELDS:
        if key not in found:
            raise Malformed(f"it does not tell its {key}")
    return found["dtype"] + found["shape"] + found["data_offsets"]


@lru_cache(maxsize=1 << 12)
def _sized(dtype: bytes, shape: bytes) -> tuple[str, tuple[int, ...], int]:
    """The parts as values, and the bytes that they make; the many tensors of one form share one."""
    name = dtype.decode()
    if name not in BITS:
        raise Malformed(f"the data type {shown(name)} is unknown")
    dimensions = tuple(int(number) for number in shape.split(b",")) if shape else ()
    size_bits = BITS[name] * prod(dimensions)
    if size_bits % 8:
        raise Malformed(f"its {size_bits} bits do not end at a byte")
    return name, dimensions, size_bits // 8
