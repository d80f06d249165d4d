"""A checkpoint that is to be written: which file gets which tensors, and what each file consists of, byte by byte.

Nothing is written here. Every file is a row of segments, text of ours or a range of a source file, so that the writer
(`assembling`) copies, resumes and counts without knowing what a tensor is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from casemate.checkpoint.entry import BITS
from casemate.checkpoint.jsonscan import shown, shown_path
from casemate.checkpoint.listing import Listing, walked
from casemate.checkpoint.safetensors import INDEX, MOST_HEADER_BYTES, Folder, Header, Tensor
from casemate.errors import UsageError

OWN = ".casemate-"
"""How files of a half-done output begin; files of a source that begin so are not copied."""
SINGLE = "model.safetensors"
"""What engines look for where there is no index."""
MOST_NAME_BYTES = 1 << 12

_PREFIX_BYTES = 8
_DIGITS = 13
"""Of an offset, at most: 10 TB in one file."""


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes of a source file, by its path in the source folder; the end excluded."""

    file: str
    start: int
    end: int


Segment = bytes | Range
"""A piece of a file: its own bytes, or where they come from."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A tensor under the name that it gets."""

    name: str
    tensor: Tensor


@dataclass(frozen=True, slots=True)
class Target:
    """A weight file to write. `same_as` names the source file that it equals to the last byte, header included."""

    file: str
    pieces: tuple[Piece, ...]
    metadata: tuple[tuple[str, str], ...] = ()
    same_as: str = ""

    @property
    def data_bytes(self) -> int:
        """What its tensors occupy, without the header."""
        return sum(piece.tensor.size_bytes for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Layout:
    """A whole folder to write: weight files, the index if there is one, and what is copied as it is.

    `left_out` are files of the source that are not copied, each with the reason.
    """

    source: Path
    targets: tuple[Target, ...]
    index: bytes | None
    others: tuple[Range, ...]
    left_out: tuple[tuple[str, str], ...]

    def files(self) -> Iterator[tuple[str, tuple[Segment, ...]]]:
        """Each file of the output by its path in it, and what it consists of. Headers are made on the way."""
        for target in self.targets:
            yield target.file, segments(self.source, target)
        if self.index is not None:
            yield INDEX, (self.index,)
        for other in self.others:
            yield other.file, (other,)


def laid_out(folder: Folder, targets: tuple[Target, ...]) -> Layout:
    """A layout of these weight files, with an index unless one file is all, and the other files.

    Raises:
        UsageError: see `listing.walked`; or a name or header would be longer than the format allows.
    """
    for piece in (piece for target in targets if not target.same_as for piece in target.pieces):
        _must_be_a_name(piece.name)
    others, left_out = _others(folder)
    if all(target.same_as for target in targets) and len(targets) == len(folder.headers):
        kept = (_whole(folder.path, folder.index.file),) if folder.index else ()
        return Layout(folder.path, targets, None, (*kept, *others), left_out)
    was_alone = len(folder.headers) == 1 and folder.index is None
    is_alone = len(targets) == 1 and (targets[0].file == SINGLE or was_alone)
    index = None if is_alone else _index(targets)
    return Layout(folder.path, targets, index, others, left_out)


def segments(source: Path, target: Target) -> tuple[Segment, ...]:
    """What a weight file consists of; ranges that follow each other in their file are one."""
    if target.same_as:
        return (_whole(source, target.same_as),)
    joined: list[Range] = []
    for piece in target.pieces:
        tensor = piece.tensor
        if joined and (joined[-1].file, joined[-1].end) == (tensor.file, tensor.start):
            joined[-1] = Range(tensor.file, joined[-1].start, tensor.end)
        elif tensor.size_bytes:
            joined.append(Range(tensor.file, tensor.start, tensor.end))
    return (head(target), *joined)


def head(target: Target) -> bytes:
    """Length and header of a weight file, padded as the format's own writer does.

    Raises:
        UsageError: it would be longer than any reader takes.
    """
    entries: dict[str, object] = {"__metadata__": dict(target.metadata)} if target.metadata else {}
    at = 0
    for piece in target.pieces:
        end = at + piece.tensor.size_bytes
        shape = list(piece.tensor.shape)
        entries[piece.name] = {"dtype": piece.tensor.dtype, "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _PREFIX_BYTES)
    if len(text) > MOST_HEADER_BYTES:
        raise UsageError(f"the header would have {len(text)} bytes", where=target.file, remedy="ask for smaller files")
    return len(text).to_bytes(_PREFIX_BYTES, "little") + text


def entry_bytes(piece: Piece) -> int:
    """What a tensor adds to a header at most, whatever its place."""
    name = json.dumps(piece.name, ensure_ascii=False).encode()
    shape = json.dumps(list(piece.tensor.shape), separators=(",", ":"))
    return (
        len(name)
        + len(shape)
        + len(piece.tensor.dtype)
        + len(':{"dtype":"","shape":,"data_offsets":[,]},')
        + 2 * _DIGITS
    )


def aligned(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Wide numbers first, as the format's own writer orders them, so that each stands at a multiple of its size."""
    return tuple(sorted(pieces, key=lambda piece: -BITS[piece.tensor.dtype]))


def in_order_of_data(header: Header) -> tuple[Tensor, ...]:
    """A file's tensors as their data lies."""
    return tuple(sorted(header.tensors, key=lambda tensor: (tensor.start, tensor.end)))


def _must_be_a_name(name: str) -> None:
    if not name or name == "__metadata__":
        raise UsageError(f"{shown(name)!r} cannot be the name of a tensor")
    if len(name.encode()) > MOST_NAME_BYTES:
        raise UsageError(f"the name {shown(name)} is longer than {MOST_NAME_BYTES} bytes")


def _index(targets: tuple[Target, ...]) -> bytes:
    places = sorted((piece.name, target.file) for target in targets for piece in target.pieces)
    total = sum(target.data_bytes for target in targets)
    index = {"metadata": {"total_size": total}, "weight_map": dict(places)}
    return json.dumps(index, ensure_ascii=False, indent=2).encode() + b"\n"


def _others(folder: Folder) -> tuple[tuple[Range, ...], tuple[tuple[str, str], ...]]:
    """Config, tokenizer and the like; in subfolders weight files too, which nothing here changes."""
    copied: list[Range] = []
    left_out: list[tuple[str, str]] = []
    rewritten = {header.file for header in folder.headers}
    for below, listing in walked(folder.path):
        prefix = f"{below}/" if below else ""
        kept_back = dict(_kept_back(listing, folder if not below else None))
        left_out += [(prefix + name, reason) for name, reason in kept_back.items()]
        others = [name for name in listing.files if name not in kept_back]
        if not below:
            others = [name for name in others if name not in rewritten and not _is_index(name)]
        copied += [_whole(folder.path, prefix + name) for name in others]
    return tuple(copied), tuple(left_out)


def _kept_back(listing: Listing, top: Folder | None) -> Iterator[tuple[str, str]]:
    yield from ((name, "a pickle, which runs code when loaded") for name in listing.pickles)
    yield from ((name, "a link that leads out of the folder") for name in listing.outside)
    yield from ((name, "neither a file nor a folder") for name in listing.odd)
    yield from ((name, "left from a run that was interrupted") for name in listing.files if name.startswith(OWN))
    yield from ((name, "a weight file that the index does not name") for name in (top.unnamed if top else ()))


def _is_index(name: str) -> bool:
    return ".safetensors.index." in name


def _whole(source: Path, file: str) -> Range:
    try:
        return Range(file, 0, (source / file).stat().st_size)
    except OSError as error:
        raise UsageError(f"the file cannot be read: {error.strerror}", where=shown_path(source / file)) from error
