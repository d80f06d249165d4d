"""What a model folder or file is, from its headers and config alone: no weight is read, nothing is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import nlargest
from math import prod
from pathlib import Path

from casemate.checkpoint.config import tell
from casemate.checkpoint.facts import Gguf
from casemate.checkpoint.gguf import read_gguf
from casemate.checkpoint.hashing import size_of
from casemate.checkpoint.jsonscan import shown_path
from casemate.checkpoint.keys import load, shown
from casemate.checkpoint.licence import Statement, statements
from casemate.checkpoint.listing import PICKLES, Listing, listed, opened, walked
from casemate.checkpoint.safetensors import Header, Index, Tensor, index_of, read_header, within_reason
from casemate.checkpoint.weights import Reading, weigh
from casemate.errors import UsageError
from casemate.finding import Unread

BIGGEST = 10
"""How many of the biggest tensors are told."""
SAFE_ROUTE = (
    "Pickles run code when they are loaded, so nothing here opens them. Prefer the publisher's safetensors. Otherwise "
    "convert on a machine that holds no secret, has no network and is thrown away afterwards (`docker run --rm "
    "--network none` with this folder mounted read-only): `torch.load(FILE, map_location='cpu', weights_only=True)` of "
    "torch 2.6 or newer (before, weights_only could be made to run code: CVE-2025-32434), then "
    "`safetensors.torch.save_file`. Carry only the result back, and check it with `casemate checkpoint verify`."
)

_CONFIG = "config.json"
_REMEDY = "name the folder that holds config.json and the weight files"
_LED_OUT = "a link that leads out of the folder"
_GGUF = b"GGUF"


@dataclass(frozen=True, slots=True)
class File:
    """A weight file: its tensors and bytes."""

    name: str
    tensors: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Amount:
    """Tensors of one data type: how many, how many numbers as stored, how many bytes."""

    dtype: str
    tensors: int
    numbers: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the model (`layers` without their routed experts, `experts`, `embedding`, `head`, …) and its bytes."""

    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Pickle:
    """A file that would run code when loaded; it is named and not opened."""

    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a folder or file is. Empty texts where nothing tells.

    `unread` are weight files that are absent or not of the format, `unnamed` those that the index does not name, `code`
    Python files that came along (no engine needs them unless it is told to trust them).
    """

    path: Path
    architecture: str = ""
    model_type: str = ""
    quantization: str = ""
    files: tuple[File, ...] = ()
    dtypes: tuple[Amount, ...] = ()
    parts: tuple[Part, ...] = ()
    biggest: tuple[Tensor, ...] = ()
    licence: tuple[Statement, ...] = ()
    pickles: tuple[Pickle, ...] = ()
    ggufs: tuple[Gguf, ...] = ()
    unread: tuple[Unread, ...] = ()
    unnamed: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def tensors(self) -> int:
        """All tensors of the files that an engine would read."""
        return sum(amount.tensors for amount in self.dtypes)

    @property
    def tensor_bytes(self) -> int:
        """What they occupy."""
        return sum(amount.size_bytes for amount in self.dtypes)


def inspect(path: Path) -> Inspection:
    """Look at a model folder, a safetensors file or a GGUF file.

    Raises:
        UsageError: it cannot be read, or a single file is neither format (a pickle is named as one).
    """
    try:
        is_folder = path.is_dir()
    except OSError as error:  # a name too long, a folder on the way that may not be entered
        raise UsageError(f"the path cannot be read: {error.strerror}", where=shown_path(path)) from error
    return _of_folder(path) if is_folder else _of_file(path)


def config_of(folder: Path) -> dict[str, object]:
    """The content of a folder's config.json; empty where there is none that can be read."""
    return _config(listed(folder))[0]


def _of_file(path: Path) -> Inspection:
    if path.name.lower().endswith(PICKLES):
        raise UsageError("a pickle, which is not opened", where=shown_path(path), remedy=SAFE_ROUTE)
    with opened(path) as file:
        start = file.read(len(_GGUF))
    if start == _GGUF:
        gguf = read_gguf(path)
        return Inspection(path, architecture=gguf.architecture, ggufs=(gguf,))
    return _counted(Inspection(path), (read_header(path),))


def _of_folder(folder: Path) -> Inspection:
    listing = listed(folder)
    headers, unread, unnamed = _headers(listing)
    ggufs = tuple(_gguf(folder / name) for name in listing.ending(".gguf"))
    config, why = _config(listing)
    seen = Inspection(
        folder,
        licence=statements(listing, config),
        pickles=_pickles(folder),
        ggufs=tuple(gguf for gguf in ggufs if isinstance(gguf, Gguf)),
        unread=(*unread, *(gguf for gguf in ggufs if isinstance(gguf, Unread))),
        unnamed=unnamed,
        code=listing.ending(".py"),
        notes=(*why, *_oddities(listing)),
    )
    if _CONFIG not in listing.files and not (headers or seen.ggufs or seen.pickles or seen.unread):
        raise UsageError("there is nothing of a model in this folder", where=shown_path(folder), remedy=_REMEDY)
    return _parted(_counted(_named(seen, config), headers), config, headers=headers)


def _pickles(folder: Path) -> tuple[Pickle, ...]:
    """In subfolders too: some publishers keep the first form of the weights there."""
    names = (f"{below}/{name}".lstrip("/") for below, listing in walked(folder) for name in listing.pickles)
    return tuple(Pickle(name, size_of(folder / name)) for name in names)


def _oddities(listing: Listing) -> Iterator[str]:
    yield from (f"{shown(name)} is a link that leads out of the folder" for name in listing.outside)
    yield from (f"{shown(name)} is neither a file nor a folder" for name in listing.odd)


def _config(listing: Listing) -> tuple[dict[str, object], tuple[str, ...]]:
    if _CONFIG not in listing.files:
        return {}, ("there is no config.json: the architecture is not known",)
    try:
        return load(listing.path / _CONFIG), ()
    except UsageError as error:
        return {}, (f"{error.what}: the architecture is not known",)


def _named(seen: Inspection, config: Mapping[str, object]) -> Inspection:
    architectures, quantization = config.get("architectures"), config.get("quantization_config")
    first = architectures[0] if isinstance(architectures, list) and architectures else ""
    method = quantization.get("quant_method", "") if isinstance(quantization, dict) else ""
    return replace(
        seen,
        architecture=shown(first),
        model_type=shown(config.get("model_type", "")),
        quantization=shown(method),
    )


def _headers(listing: Listing) -> tuple[tuple[Header, ...], tuple[Unread, ...], tuple[str, ...]]:
    """What an engine would read, what of that cannot be read, and what the index does not name."""
    unread: list[Unread] = []
    index: Index | None = None
    try:
        index = index_of(listing)
    except UsageError as error:
        unread.append(Unread("the index", error.what))
    names = set(index.files if index else listing.safetensors)
    there, outside = set(listing.files), set(listing.outside)
    unread += [Unread(name, _LED_OUT if name in outside else "not there") for name in sorted(names - there)]
    read = (_header(listing.path / name, unread) for name in sorted(names & there))
    headers = tuple(within_reason(header for header in read if header))
    return headers, tuple(unread), tuple(name for name in listing.safetensors if name not in names)


def _header(path: Path, unread: list[Unread]) -> Header | None:
    try:
        return read_header(path)
    except UsageError as error:
        unread.append(Unread(path.name, error.what))
        return None


def _gguf(path: Path) -> Gguf | Unread:
    try:
        return read_gguf(path)
    except UsageError as error:
        return Unread(path.name, error.what)


def _counted(seen: Inspection, headers: tuple[Header, ...]) -> Inspection:
    tensors = [tensor for header in headers for tensor in header.tensors]
    kinds: dict[str, Amount] = {}
    for tensor in tensors:
        before = kinds.get(tensor.dtype, Amount(tensor.dtype, 0, 0, 0))
        numbers, size_bytes = before.numbers + prod(tensor.shape), before.size_bytes + tensor.size_bytes
        kinds[tensor.dtype] = Amount(tensor.dtype, before.tensors + 1, numbers, size_bytes)
    return replace(
        seen,
        files=tuple(File(header.file, len(header.tensors), header.size_bytes) for header in headers),
        dtypes=tuple(sorted(kinds.values(), key=lambda amount: -amount.size_bytes)),
        biggest=tuple(nlargest(BIGGEST, tensors, key=lambda tensor: tensor.size_bytes)),
    )


def _parted(seen: Inspection, config: dict[str, object], *, headers: tuple[Header, ...]) -> Inspection:
    """Bytes by part of the model, where its config tells enough to know the parts."""
    if not config or not headers:
        return seen
    try:
        told = tell(config, seen.path)
    except UsageError as error:
        return replace(seen, notes=(*seen.notes, f"the parts are not known: {error.what}"))
    weighed = weigh((tensor for header in headers for tensor in header.tensors), Reading(len(told.anatomy.layers)))
    named = (
        ("layers", sum(block.total_bytes - block.expert_bytes for block in weighed.layers)),
        ("experts", sum(block.expert_bytes for block in weighed.layers)),
        ("embedding", weighed.embedding.total_bytes),
        ("head", weighed.head.total_bytes),
        ("draft", sum(block.total_bytes for block in weighed.draft)),
        ("vision", weighed.vision.total_bytes),
    )
    parts = tuple(Part(name, size) for name, size in named if size)
    note = f"{weighed.unknown} tensors have names that are not known; they count where they stand"
    return replace(seen, parts=parts, notes=(*seen.notes, note) if weighed.unknown else seen.notes)
