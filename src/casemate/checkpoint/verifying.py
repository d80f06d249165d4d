"""Checks a model folder against itself (headers, index, sizes) and against hashes that somebody vouches for."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from pathlib import Path

from casemate.checkpoint.hashing import Digest, Observer, hashed
from casemate.checkpoint.listing import Listing, listed, opened, walked
from casemate.checkpoint.manifest import hub_names, read_manifest
from casemate.checkpoint.safetensors import Header, Index, index_of, read_header, within_reason
from casemate.errors import UsageError
from casemate.finding import Unread

_NUMBERED = re.compile(r"(.*-)([0-9]{3,6})-of-([0-9]{3,6})(\.safetensors)")
_MOST_GAPS = 10_000
_CONFIG = "config.json"
_MOST_CONFIG_BYTES = 16 << 20


class Fault(StrEnum):
    """A kind of damage; the text is how it is told."""

    ABSENT_FILE = "weight files that are not there"
    UNNAMED_FILE = "weight files that the index does not name"
    MALFORMED_FILE = "weight files that are not what the format says"
    CUT_OFF = "files that are shorter than their headers say"
    TOO_LONG = "files that are longer than their headers say"
    OUTSIDE = "links that lead out of the folder"
    ODD = "names that are neither files nor folders"
    MISSING_TENSOR = "tensors that the index names and no file has"
    EXTRA_TENSOR = "tensors that the index does not name"
    MISPLACED_TENSOR = "tensors that are in another file than the index says"
    DUPLICATE_TENSOR = "tensors that are in several files"
    WRONG_TOTAL = "a total that is not the sum of the tensors"
    MALFORMED_CONFIG = "a config.json that is not of the form"
    MALFORMED_INDEX = "an index that is not of the form"
    NO_WEIGHTS = "no safetensors files"
    CHANGED = "files whose hash is not the expected one"
    NOT_FOUND = "files of the manifest that are not there"
    UNLISTED = "files that the manifest does not list"


@dataclass(frozen=True, slots=True)
class Found:
    """Damage of one kind, and each place of it, sorted."""

    fault: Fault
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verified:
    """What a check saw. `unread` is what it could not look into; `checked_hashes` counts files compared with a hash."""

    path: Path
    files: int
    tensors: int
    tensor_bytes: int
    found: tuple[Found, ...]
    unread: tuple[Unread, ...]
    pickles: tuple[str, ...]
    has_index: bool
    digests: tuple[Digest, ...] = ()
    checked_hashes: int = 0

    @property
    def is_clean(self) -> bool:
        """Nothing found, and nothing unread."""
        return not self.found and not self.unread


def verify(
    folder: Path, *, manifest: Path | None = None, hashes: bool = False, observe: Observer | None = None
) -> Verified:
    """Check a folder.

    Args:
        folder: the model folder.
        manifest: a SHA-256 manifest; the files that it lists are hashed and compared.
        hashes: hash every file, and compare with what the hub's clients noted, where they did.
        observe: is told how far the hashing is.

    Raises:
        UsageError: the folder cannot be read, or the manifest is not one.
    """
    listing = listed(folder)
    expected = read_manifest(manifest) if manifest else {}
    structure = _structure(listing)
    if not manifest and not hashes:
        return structure
    names = _all_files(folder, leave_out=manifest)
    known = {**hub_names(folder, names if hashes else ()), **expected}
    results = hashed(folder, [name for name in names if hashes or name in expected], observe=observe)
    digests = tuple(result for result in results if isinstance(result, Digest))
    found = [(Fault.CHANGED, digest.file) for digest in digests if not _is_as(known.get(digest.file), digest)]
    found += [(Fault.NOT_FOUND, name) for name in expected.keys() - set(names)]
    found += [(Fault.UNLISTED, name) for name in names if manifest and name not in expected]
    return replace(
        structure,
        found=structure.found + _grouped(found),
        unread=_each_once((*structure.unread, *(result for result in results if isinstance(result, Unread)))),
        digests=digests,
        checked_hashes=sum(digest.file in known for digest in digests),
    )


def _structure(listing: Listing) -> Verified:
    """Headers, index and sizes; no data is read."""
    found: list[tuple[Fault, str]] = []
    unread: list[Unread] = []
    index: Index | None = None
    try:
        index = index_of(listing)
    except UsageError as error:
        found.append((Fault.MALFORMED_INDEX, error.what))
    read = (_header(listing.path / file, found, unread=unread) for file in listing.safetensors)
    headers = list(within_reason(header for header in read if header))
    used = [header for header in headers if index is None or header.file in index.files]
    found += _of_files(listing, headers, index=index)
    found += _of_tensors(used, index)
    return Verified(
        path=listing.path,
        files=len(headers),
        tensors=sum(len(header.tensors) for header in used),
        tensor_bytes=_tensor_bytes(used),
        found=_grouped(found),
        unread=tuple(unread),
        pickles=listing.pickles,
        has_index=index is not None,
    )


def _header(path: Path, found: list[tuple[Fault, str]], *, unread: list[Unread]) -> Header | None:
    try:
        return read_header(path, short=True)
    except UsageError as error:
        if isinstance(error.__cause__, OSError):
            unread.append(Unread(path.name, error.what))
        else:
            found.append((Fault.MALFORMED_FILE, f"{path.name}: {error.what}"))
        return None


def _of_files(listing: Listing, headers: list[Header], *, index: Index | None) -> Iterator[tuple[Fault, str]]:
    yield from ((Fault.OUTSIDE, file) for file in listing.outside)
    yield from ((Fault.ODD, file) for file in listing.odd)
    if why := _config_fault(listing):
        yield Fault.MALFORMED_CONFIG, f"{_CONFIG}: {why}"
    for header in headers:
        if header.size_bytes != header.needed_bytes:
            fault = Fault.CUT_OFF if header.size_bytes < header.needed_bytes else Fault.TOO_LONG
            yield fault, f"{header.file}: {header.size_bytes} bytes of {header.needed_bytes}"
    there = set(listing.safetensors)
    if index:
        yield from ((Fault.ABSENT_FILE, file) for file in index.files if file not in there)
        yield from ((Fault.UNNAMED_FILE, file) for file in there.difference(index.files))
    else:
        yield from ((Fault.ABSENT_FILE, file) for file in islice(_gaps(listing.safetensors), _MOST_GAPS))
        if not there:
            yield Fault.NO_WEIGHTS, str(listing.path)


def _config_fault(listing: Listing) -> str:
    """What is wrong with the config as JSON, if there is one."""
    if _CONFIG not in listing.files:
        return ""
    try:
        with opened(listing.path / _CONFIG) as file:
            content = file.read(_MOST_CONFIG_BYTES + 1)
        found = json.loads(content) if len(content) <= _MOST_CONFIG_BYTES else None
    except UsageError as error:
        return error.what
    except (ValueError, RecursionError):
        return "it is no JSON"
    return "" if isinstance(found, dict) else f"it is no JSON object of at most {_MOST_CONFIG_BYTES >> 20} MiB"


def _of_tensors(headers: list[Header], index: Index | None) -> Iterator[tuple[Fault, str]]:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for header in headers:
        for tensor in header.tensors:
            homes[tensor.name].append(header.file)
    yield from (
        (Fault.DUPLICATE_TENSOR, f"{name}: {', '.join(files)}") for name, files in homes.items() if len(files) > 1
    )
    if index is None:
        return
    named, read = dict(index.weight_map), {header.file for header in headers}
    for name, file in named.items():
        home = homes.get(name, [])
        if file in read and not home:
            yield Fault.MISSING_TENSOR, f"{name}: not in {file}"
        elif file in read and file not in home:
            yield Fault.MISPLACED_TENSOR, f"{name}: in {home[0]}, not in {file}"
    yield from ((Fault.EXTRA_TENSOR, f"{name}: in {files[0]}") for name, files in homes.items() if name not in named)
    total = _tensor_bytes(headers)
    if index.odd_total:
        yield Fault.WRONG_TOTAL, f"{index.file}: total_size is no number of bytes, the tensors have {total}"
    if read == set(index.files) and index.total_size not in (None, total):
        yield Fault.WRONG_TOTAL, f"{index.file}: {index.total_size} bytes, the tensors have {total}"


def _tensor_bytes(headers: Iterable[Header]) -> int:
    return sum(tensor.size_bytes for header in headers for tensor in header.tensors)


def _gaps(files: tuple[str, ...]) -> Iterator[str]:
    """Files that the numbers in the others' names miss: 2 and 3 of 3 are there, so 1 of 3 is not."""
    there = set(files)
    series = {
        (match[1], len(match[2]), match[3], match[4])
        for file in files
        if (match := _NUMBERED.fullmatch(file)) is not None
    }
    for start, digits, count, end in sorted(series):
        for number in range(1, int(count) + 1):
            file = f"{start}{number:0{digits}}-of-{count}{end}"
            if file not in there:
                yield file


def _all_files(folder: Path, *, leave_out: Path | None) -> list[str]:
    """Every regular file in the folder and below, but not the manifest itself."""
    own = leave_out.resolve() if leave_out else None
    names = [f"{below}/{name}".lstrip("/") for below, listing in walked(folder) for name in listing.files]
    return sorted(name for name in names if own is None or (folder / name).resolve() != own)


def _is_as(expected: str | None, digest: Digest) -> bool:
    """Whether a file is what somebody vouches for, by its SHA-256 or its git blob id; nobody may know it."""
    return expected is None or expected in (digest.sha256, digest.git)


def _each_once(unread: tuple[Unread, ...]) -> tuple[Unread, ...]:
    """A file whose header and whose hash could not be read counts as one."""
    return tuple({item.path: item for item in reversed(unread)}.values())[::-1]


def _grouped(found: Iterable[tuple[Fault, str]]) -> tuple[Found, ...]:
    places: defaultdict[Fault, list[str]] = defaultdict(list)
    for fault, place in found:
        places[fault].append(place)
    return tuple(Found(fault, tuple(sorted(places[fault]))) for fault in Fault if fault in places)
