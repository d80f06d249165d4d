"""Lays a checkpoint out anew in files of at most so many bytes, tensors unchanged; a big limit merges all into one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from casemate.checkpoint.jsonscan import shown_path
from casemate.checkpoint.layout import SINGLE, Layout, Piece, Target, aligned, entry_bytes, in_order_of_data, laid_out
from casemate.checkpoint.safetensors import Folder
from casemate.errors import UsageError

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([a-z]{0,3})", re.IGNORECASE)
_MOST_FILES = 99_999
"""The names count with five digits."""
_FRAME_BYTES = 32
"""Of a header, beside its entries: length, braces, padding."""


def parsed_size(text: str) -> int:
    """A size in bytes, from a text such as `5GB` (10^9) or `4.5 GiB` (2^30).

    Raises:
        UsageError: it is none.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or match[2].upper() not in _UNITS or not (size := int(float(match[1]) * _UNITS[match[2].upper()])):
        raise UsageError(f"{text!r} is no size", remedy="write a number and a unit, such as 5GB or 4GiB")
    if "." in match[1] and not match[2]:
        raise UsageError(f"{text!r} has no unit", remedy="write one behind it, such as 1.5GB or 1.5GiB")
    return size


def sharded(folder: Folder, *, most_bytes: int) -> Layout:
    """The same tensors in files of at most so many bytes, headers included; a tensor that is larger has its own file.

    They are filled in the order of the source, so that layers stay together.

    Raises:
        UsageError: there is no tensor; a tensor is in two files, so one of them would be lost; or
            there would be too many files.
    """
    pieces = [Piece(tensor.name, tensor) for header in folder.headers for tensor in in_order_of_data(header)]
    if not pieces:
        raise UsageError("there is no tensor in it", where=shown_path(folder.path), remedy="name a model's folder")
    if twice := len(pieces) - len({piece.name for piece in pieces}):
        raise UsageError(f"{twice} tensors are in more than one file", remedy="see casemate checkpoint verify")
    return laid_out(folder, targets_of(pieces, metadata=shared_metadata(folder), most_bytes=most_bytes))


def shared_metadata(folder: Folder) -> tuple[tuple[str, str], ...]:
    """What the writers of all files noted; of two notes under one key the first file's."""
    return tuple({key: value for header in reversed(folder.headers) for key, value in header.metadata}.items())


def targets_of(
    pieces: Iterable[Piece], *, metadata: tuple[tuple[str, str], ...], most_bytes: int
) -> tuple[Target, ...]:
    """Weight files of at most so many bytes with these tensors in order, named as the engines expect."""
    frame = _FRAME_BYTES + len(json.dumps(dict(metadata), ensure_ascii=False).encode())
    groups = list(_filled(pieces, most_bytes - frame))
    if len(groups) > _MOST_FILES:
        raise UsageError(f"{len(groups)} files would be too many", remedy="ask for larger files")
    names = [f"model-{number:05}-of-{len(groups):05}.safetensors" for number in range(1, len(groups) + 1)]
    if len(groups) == 1:
        names = [SINGLE]
    return tuple(Target(name, aligned(group), metadata) for name, group in zip(names, groups, strict=True))


def _filled(pieces: Iterable[Piece], most_bytes: int) -> Iterator[list[Piece]]:
    group: list[Piece] = []
    size = 0
    for piece in pieces:
        more = piece.tensor.size_bytes + entry_bytes(piece)
        if group and size + more > most_bytes:
            yield group
            group, size = [], 0
        group.append(piece)
        size += more
    if group:
        yield group
