"""Reads a model file's header into a `Gguf`. Nothing but the header is read, and nothing in it is believed.

Format: GGUF versions 2 and 3 (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), little-endian.
"""

from __future__ import annotations

import struct
from io import SEEK_CUR, BufferedReader
from math import prod
from os import fstat
from pathlib import Path

from casemate.checkpoint.facts import Gguf
from casemate.errors import UsageError

_VERSIONS = frozenset({2, 3})
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
    11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 30: (1, 2),
}  # fmt: skip
"""ggml tensor types that models of today use: numbers in a block, and the block's bytes."""
_MOST_ENTRIES = 1 << 16
_MOST_ITEMS = 1 << 22
_MOST_TENSORS = 1 << 18
_MOST_TEXT_BYTES = 1 << 24
_MOST_DIMENSIONS = 8
_MOST_NESTED = 4
_MOST_LAYERS = 1 << 12
_KEPT_ITEMS = _MOST_LAYERS
"""Longer arrays are vocabularies, which we pass over."""
_NUMBER_BYTES = 2
"""Keys and values are cached as 16-bit numbers."""

_Value = int | float | bytes | list[int | float]
_Entries = dict[bytes, _Value]


def read_gguf(path: Path) -> Gguf:
    """Read the header of a GGUF file.

    Args:
        path: the file.

    Returns:
        Its facts; the cache size follows from layers, key-value heads and head sizes.

    Raises:
        UsageError: it cannot be read, is no GGUF file, or is only part of one.
    """
    try:
        with path.open("rb") as file:
            size_bytes = fstat(file.fileno()).st_size
            return _checkpoint(_entries(_Bytes(file, size_bytes)), path, size_bytes=size_bytes)
    except OSError as error:
        raise UsageError(f"the model file cannot be read: {error.strerror}", where=str(path)) from error
    except _Foreign as error:
        raise UsageError(
            f"not a GGUF file: {error}", where=str(path), remedy="remove it and run casemate fetch"
        ) from error


class _Foreign(Exception):  # noqa: N818 - it never leaves this file
    """The bytes are not what the format says."""


def _checkpoint(entries: _Entries, path: Path, *, size_bytes: int) -> Gguf:
    architecture = _text(entries, b"general.architecture")
    prefix = architecture + b"."
    layers = _number(entries, prefix + b"block_count", most=_MOST_LAYERS)
    heads = _per_layer(entries, prefix + b"attention.head_count", layers=layers)
    kv_heads = _per_layer(entries, prefix + b"attention.head_count_kv", layers=layers, default=heads)
    width = _number(entries, prefix + b"embedding_length") // max(*heads, 1)
    key_size = _number(entries, prefix + b"attention.key_length", default=width)
    value_size = _number(entries, prefix + b"attention.value_length", default=width)
    return Gguf(
        path=str(path),
        name=_shown(_text(entries, b"general.name", default=path.stem.encode())),
        architecture=_shown(architecture),
        weights_bytes=size_bytes,
        layers=layers,
        context_length=_number(entries, prefix + b"context_length"),
        kv_bytes_per_token=_NUMBER_BYTES * sum(kv_heads) * (key_size + value_size),
    )


def _shown(text: bytes) -> str:
    # The file may come from anywhere, and its name is printed: control characters would reach the terminal.
    return "".join(letter if letter.isprintable() else "?" for letter in text.decode(errors="replace"))


def _text(entries: _Entries, key: bytes, *, default: bytes | None = None) -> bytes:
    value = entries.get(key, default)
    if not isinstance(value, bytes):
        raise _Foreign(f"it does not tell its {_shown(key)}")
    return value


def _number(entries: _Entries, key: bytes, *, default: int | None = None, most: int = 1 << 32) -> int:
    return _counted(entries.get(key, default), key, most=most)


def _per_layer(entries: _Entries, key: bytes, *, layers: int, default: list[int] | None = None) -> list[int]:
    """A number for each layer: some models give one for all, others a list."""
    value = entries.get(key, default)
    numbers = value if isinstance(value, list) else [value] * layers
    if len(numbers) != layers or not numbers:
        raise _Foreign(f"its {_shown(key)} does not fit its {layers} layers")
    return [_counted(number, key, most=1 << 32) for number in numbers]


def _counted(value: object, key: bytes, *, most: int) -> int:
    if not isinstance(value, int) or not 0 <= value <= most:
        raise _Foreign(f"it does not tell its {_shown(key)}")
    return value


class _Bytes:
    """Takes values from a file in order, and never more than the file has."""

    def __init__(self, file: BufferedReader, size_bytes: int) -> None:
        self._file = file
        self._size_bytes = size_bytes
        self._items = 0
        self.at = 0

    def take(self, size_bytes: int) -> bytes:
        self._advance(size_bytes)
        content = self._file.read(size_bytes)
        if len(content) < size_bytes:
            raise _Foreign("it was cut off while being read")
        return content

    def skip(self, size_bytes: int) -> None:
        self._advance(size_bytes)
        self._file.seek(size_bytes, SEEK_CUR)

    def number(self, form: str) -> int | float:
        value: int | float = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return value

    def count(self, most: int) -> int:
        """A 64-bit length or count, refused above `most`."""
        (value,) = struct.unpack("<Q", self.take(8))
        if value > most:
            raise _Foreign(f"it counts {value} where {most} would be many")
        return int(value)

    def items(self) -> int:
        """The length of an array; all arrays together have a limit, for each item costs time."""
        number = self.count(_MOST_ITEMS)
        self._items += number
        if self._items > _MOST_ITEMS:
            raise _Foreign("its arrays have no end")
        return number

    def _advance(self, size_bytes: int) -> None:
        self.at += size_bytes
        if self.at > self._size_bytes:
            raise _Foreign("it ends too early")


def _entries(source: _Bytes) -> _Entries:
    if source.take(4) != b"GGUF":
        raise _Foreign("it does not begin with GGUF")
    version = source.number("<I")
    if version not in _VERSIONS:
        raise _Foreign(f"its version is {version}, we read 2 and 3")
    tensors = source.count(_MOST_TENSORS)
    entries: _Entries = {}
    for _ in range(source.count(_MOST_ENTRIES)):
        key = source.take(source.count(_MOST_TEXT_BYTES))
        entries[key] = _value(source, int(source.number("<I")))
    end = max([_tensor_end(source) for _ in range(tensors)], default=0)
    alignment = max(_number(entries, b"general.alignment", default=32), 1)
    # Ask for the last byte of the weights: half a download has a perfect header.
    source.skip(-source.at % alignment + end)
    return entries


def _value(source: _Bytes, kind: int, *, nested: int = 0) -> _Value:
    if kind in _SCALARS:
        return source.number(_SCALARS[kind])
    if kind == _STRING:
        return source.take(source.count(_MOST_TEXT_BYTES))
    if kind == _ARRAY and nested < _MOST_NESTED:
        return _array(source, nested)
    raise _Foreign(f"it has a value of the unknown kind {kind}")


def _array(source: _Bytes, nested: int) -> list[int | float]:
    kind, length = int(source.number("<I")), source.items()
    if kind in _SCALARS and length <= _KEPT_ITEMS:
        return [source.number(_SCALARS[kind]) for _ in range(length)]
    if kind in _SCALARS:
        source.skip(length * struct.calcsize(_SCALARS[kind]))
    elif kind == _STRING:
        for _ in range(length):
            source.skip(source.count(_MOST_TEXT_BYTES))
    else:
        for _ in range(length):
            _value(source, kind, nested=nested + 1)
    return []


def _tensor_end(source: _Bytes) -> int:
    """Where a tensor ends, counted from the first; where it begins, if its type is one that we do not know."""
    source.skip(source.count(_MOST_TEXT_BYTES))
    dimensions = int(source.number("<I"))
    if dimensions > _MOST_DIMENSIONS:
        raise _Foreign(f"it has a tensor of {dimensions} dimensions")
    numbers = prod(int(source.number("<Q")) for _ in range(dimensions))
    block, block_bytes = _BLOCKS.get(int(source.number("<I")), (1, 0))
    return int(source.number("<Q")) + numbers // block * block_bytes
