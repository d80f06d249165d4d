"""Reads the headers of safetensors files, and nothing behind them. Nothing in a header is believed before it adds up.

Format: https://github.com/huggingface/safetensors (8 bytes little-endian length, a JSON object, the data), with the
data types of version 0.8. As there, the tensors must cover the data without gap or overlap, to the last byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from itertools import chain
from operator import attrgetter
from os import fstat
from pathlib import Path

from casemate.checkpoint.entry import entry
from casemate.checkpoint.jsonscan import Cursor, Malformed, shown, shown_path
from casemate.checkpoint.listing import Listing, listed, opened
from casemate.errors import UsageError

INDEX = "model.safetensors.index.json"
"""What transformers and the engines call the index of a folder of several weight files."""
MOST_HEADER_BYTES = 100_000_000
"""The format's own limit."""
MOST_TENSORS = 1 << 20
"""In one folder; the largest models of today have some hundred thousand."""

_MOST_NOTES = 1 << 16
_MOST_INDEX_BYTES = 1 << 27
_MOST_NOTES_BYTES = 1 << 20
_PREFIX_BYTES = 8
_PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor: its name, data type (a key of `entry.BITS`), shape, the file's name, and its place there.

    `start` and `end` are bytes from the beginning of the file, the end excluded.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: str
    start: int
    end: int

    @property
    def size_bytes(self) -> int:
        """What it occupies."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Header:
    """What one file says of its tensors, in the header's order.

    `file` is the file's name, `metadata` the texts that its writer left, `data_start` where the data begins, and
    `size_bytes` what the file has. `needed_bytes` is what it should have.
    """

    file: str
    tensors: tuple[Tensor, ...]
    metadata: tuple[tuple[str, str], ...]
    data_start: int
    size_bytes: int

    @property
    def needed_bytes(self) -> int:
        """Where the last tensor ends."""
        return max((tensor.end for tensor in self.tensors), default=self.data_start)


@dataclass(frozen=True, slots=True)
class Index:
    """The index of a folder: tensor name to file name, and the bytes of all tensors as its writer counted them.

    `odd_total` says that the writer's count is no number of bytes.
    """

    total_size: int | None
    weight_map: tuple[tuple[str, str], ...]
    file: str = INDEX
    odd_total: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The weight files that it names, each once, sorted."""
        return tuple(sorted({file for _, file in self.weight_map}))


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of safetensors files: those that the index names, or all of them where there is none.

    `unnamed` are safetensors files beside them that the index does not name, so that no engine reads them.
    """

    path: Path
    headers: tuple[Header, ...]
    index: Index | None
    unnamed: tuple[str, ...] = ()

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors of all files, file by file."""
        return tuple(chain.from_iterable(header.tensors for header in self.headers))


def read_header(path: Path, *, short: bool = False) -> Header:
    """Read the header of one file.

    Args:
        path: the file; not a link that leads anywhere else than the caller wants, see `read_folder`.
        short: take a file that has fewer or more bytes than its header says (a download that broke off).

    Returns:
        Its tensors, checked: known data types, shapes that fit the bytes, no gap, no overlap, nothing outside.

    Raises:
        UsageError: the file cannot be read, or is not what the format says.
    """
    with opened(path) as file:
        try:
            header = _header(file, path.name)
        except Malformed as error:
            raise UsageError(f"not a safetensors file: {error}", where=shown_path(path)) from error
    if header.size_bytes != header.needed_bytes and not short:
        fault = "cut off" if header.size_bytes < header.needed_bytes else "longer than its header says"
        raise UsageError(
            f"a weight file is {fault}: {header.size_bytes} bytes of {header.needed_bytes}",
            where=shown_path(path),
            remedy="download it again",
        )
    return header


def read_index(path: Path) -> Index:
    """Read an index (`model.safetensors.index.json`).

    Raises:
        UsageError: it cannot be read, is not of the form, or names a file that is not a plain name of a weight file.
    """
    with opened(path) as file:
        text = file.read(_MOST_INDEX_BYTES + 1)
    if len(text) > _MOST_INDEX_BYTES:
        raise UsageError(f"an index of more than {_MOST_INDEX_BYTES} bytes", where=shown_path(path))
    try:
        return _index(Cursor(text), path.name)
    except Malformed as error:
        raise UsageError(f"not an index of weight files: {error}", where=shown_path(path)) from error


def read_folder(folder: Path) -> Folder:
    """Read the headers of a model folder, as an engine would: by the index where there is one.

    Raises:
        UsageError: there are no safetensors files, the index names an absent one, a link leads out of the folder, or a
            file is not what the format says.
    """
    listing = listed(folder)
    index = index_of(listing)
    files = index.files if index else listing.safetensors
    there, outside = set(listing.files), set(listing.outside)
    for file in files:
        if file not in there:
            led_out = file in outside
            reason = "is a link that leads out of the folder" if led_out else "is not there or is no file"
            remedy = "copy the file here" if led_out else "download the missing files"
            raise UsageError(f"the weight file {shown(file)} {reason}", where=shown_path(folder), remedy=remedy)
    if not files:
        raise UsageError("no safetensors files in this folder", where=shown_path(folder), remedy=_instead(listing))
    named = set(files)
    headers = tuple(within_reason(read_header(folder / file) for file in files))
    return Folder(folder, headers, index, tuple(file for file in listing.safetensors if file not in named))


def within_reason(headers: Iterable[Header]) -> Iterator[Header]:
    """The headers, as long as they have no more tensors than a model would; then a UsageError, before memory ends."""
    tensors = 0
    for header in headers:
        tensors += len(header.tensors)
        if tensors > MOST_TENSORS:
            raise UsageError(f"more than {MOST_TENSORS} tensors: not a model", where=shown(header.file))
        yield header


def index_of(listing: Listing) -> Index | None:
    """The index that rules a listed folder; None where there is none.

    Raises:
        UsageError: see `read_index`; or there are several, none of them with the name that engines look for.
    """
    names = tuple(name for name in listing.files if ".safetensors.index." in name and name.endswith(".json"))
    if not names:
        return None
    if INDEX not in names and len(names) > 1:
        raise UsageError(f"{len(names)} indexes and none is {INDEX}", where=shown_path(listing.path))
    return read_index(listing.path / (INDEX if INDEX in names else names[0]))


def _instead(listing: Listing) -> str:
    if listing.pickles:
        return f"{len(listing.pickles)} files here are pickles, which run code when loaded: convert them elsewhere"
    return "name the folder that holds config.json and the weight files"


def _header(file: BufferedReader, name: str) -> Header:
    size_bytes = fstat(file.fileno()).st_size
    prefix = file.read(_PREFIX_BYTES)
    length = int.from_bytes(prefix, "little")
    if prefix.startswith(_PICKLES) and length > MOST_HEADER_BYTES:
        raise Malformed("by its first bytes it is a pickle or an archive of pickles, which run code when loaded")
    if size_bytes < _PREFIX_BYTES:
        raise Malformed(f"it has {size_bytes} bytes")
    if length > MOST_HEADER_BYTES:
        raise Malformed(f"its header would have {length} bytes, where {MOST_HEADER_BYTES} are the most")
    if length > size_bytes - _PREFIX_BYTES:
        raise Malformed(f"its header would have {length} bytes, and the file has {size_bytes}")
    text = file.read(length)
    if len(text) < length:
        raise Malformed("it was cut off while being read")
    if not text.startswith(b"{"):
        raise Malformed("its header is no JSON object")
    return _checked(text, name, size_bytes=size_bytes)


def _checked(text: bytes, name: str, *, size_bytes: int) -> Header:
    cursor, data_start = Cursor(text), _PREFIX_BYTES + len(text)
    tensors: list[Tensor] = []
    metadata: tuple[tuple[str, str], ...] = ()
    for key in cursor.members():
        if key == "__metadata__":
            metadata = cursor.texts(most=_MOST_NOTES)
            continue
        if len(tensors) >= MOST_TENSORS:
            raise Malformed(f"it has more than {MOST_TENSORS} tensors")
        try:
            dtype, shape, start, end = entry(cursor)
        except Malformed as error:
            raise Malformed(f"the tensor {shown(key)}: {error}") from error
        tensors.append(Tensor(key, dtype, shape, name, data_start + start, data_start + end))
    cursor.finish()
    _must_cover(tensors, data_start)
    return Header(name, tuple(tensors), metadata, data_start, size_bytes)


def _must_cover(tensors: list[Tensor], data_start: int) -> None:
    at = data_start
    for tensor in sorted(tensors, key=attrgetter("start", "end")):
        if tensor.start != at:
            fault = "overlaps another" if tensor.start < at else "leaves a gap before it"
            raise Malformed(f"the tensor {shown(tensor.name)} {fault}")
        at = tensor.end


def _index(cursor: Cursor, name: str) -> Index:
    weight_map: tuple[tuple[str, str], ...] | None = None
    notes: object = None
    for key in cursor.members():
        if key == "weight_map":
            weight_map = cursor.texts(most=MOST_TENSORS)
        else:
            other = cursor.anything(most_bytes=_MOST_NOTES_BYTES)
            notes = other if key == "metadata" else notes
    cursor.finish()
    if weight_map is None:
        raise Malformed("it has no weight_map")
    for file in {file for _, file in weight_map}:
        _must_be_plain(file)
    total = notes.get("total_size") if isinstance(notes, dict) else None
    counted = _counted(total)
    return Index(counted, weight_map, name, odd_total=total is not None and counted is None)


def _counted(value: object) -> int | None:
    # Some writers give a float, some nothing.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**63 or value % 1:
        return None
    return int(value)


def _must_be_plain(file: str) -> None:
    """A name that can only mean a file in this folder."""
    if "/" in file or "\\" in file or not file.endswith(".safetensors") or file.startswith("."):
        raise Malformed(f"it names {shown(file)}, which is no weight file of this folder")
    if not file.isprintable():
        raise Malformed(f"it names a file with control characters, {shown(file)}")
