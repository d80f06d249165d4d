"""A model by its path: a folder, a config.json, a GGUF file, or a hub id that lies in a local cache. No network."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from casemate.checkpoint.config import Told, computed, tell
from casemate.checkpoint.facts import Block, Checkpoint, Draft, Gguf
from casemate.checkpoint.gguf import read_gguf
from casemate.checkpoint.jsonscan import shown_path
from casemate.checkpoint.keys import load, shown
from casemate.checkpoint.listing import Listing, listed
from casemate.checkpoint.safetensors import Index, index_of, read_folder
from casemate.checkpoint.weights import Reading, Weighed, weigh
from casemate.errors import UsageError

_CONFIG = "config.json"
_MODELOPT = "hf_quant_config.json"
_HUB_ID = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}", re.ASCII)
_REVISION = re.compile(r"[\w.-]{1,100}", re.ASCII)
_REMEDY = "give a model's folder, its config.json, or a GGUF file"


def read(path: Path, *, hub: Path | None = None) -> Checkpoint | Gguf:
    """Read the facts of a model. Its name decides nothing: config and headers do.

    Args:
        path: a model folder (safetensors with config.json, or one GGUF file), a config.json alone, a GGUF file, a
            repository's folder in a hub cache (`models--org--name`), or a hub id (`org/name`).
        hub: the hub cache to look a hub id up in (`…/huggingface/hub`); without it only paths are read.

    Returns:
        A `Gguf` for a GGUF file, a `Checkpoint` for anything else. Bytes are those of the headers where weight files
        are there; where only an index is, its total, spread by the config; else what the config comes to.

    Raises:
        UsageError: there is nothing there, or it does not tell what is needed; its text names file and key.
    """
    try:
        place = _found(path, hub)
        if place.is_dir():
            return _folder(place)
    except OSError as error:
        raise UsageError(f"the model cannot be read: {error.strerror}", where=shown_path(path)) from error
    except ValueError as error:  # a zero byte in the name
        raise UsageError("the model's path is no path", where=shown_path(path), remedy=_REMEDY) from error
    if place.suffix.lower() == ".gguf":
        return read_gguf(place)
    if place.suffix.lower() != ".json":
        what = "neither a model folder nor a config.json nor a GGUF file"
        raise UsageError(what, where=shown_path(place), remedy=_REMEDY)
    return computed(tell(load(place), place), place)


def _found(path: Path, hub: Path | None) -> Path:
    """The folder or file that is meant."""
    if path.is_dir() and (path / "snapshots").is_dir() and not (path / _CONFIG).exists():
        return _snapshot(path)
    if path.exists():
        return path
    if not _HUB_ID.fullmatch(str(path)):
        raise UsageError("no model is there", where=shown_path(path), remedy=_REMEDY)
    repository = hub / f"models--{str(path).replace('/', '--')}" if hub else None
    if repository is None or not repository.is_dir():
        raise UsageError(
            f"the model {shown(str(path))} is not on this machine",
            remedy="download it, then give its folder; or give its config.json alone",
        )
    return _snapshot(repository)


def _snapshot(repository: Path) -> Path:
    """The revision that `refs/main` names, or the only one (huggingface_hub's cache layout)."""
    snapshots = repository / "snapshots"
    try:
        revision = (repository / "refs" / "main").read_text(encoding="utf-8", errors="replace")[:200].strip()
    except OSError:
        revision = ""
    if _REVISION.fullmatch(revision) and revision.strip(".") and (snapshots / revision).is_dir():
        return snapshots / revision
    found = sorted(snapshot for snapshot in snapshots.iterdir() if snapshot.is_dir())
    if len(found) != 1:
        raise UsageError(
            f"{len(found)} snapshots and refs/main names none of them",
            where=shown_path(repository),
            remedy="give the snapshot's folder",
        )
    return found[0]


def _folder(folder: Path) -> Checkpoint | Gguf:
    listing = listed(folder)
    if _CONFIG not in listing.files:
        return _only_gguf(listing)
    modelopt = load(folder / _MODELOPT) if _MODELOPT in listing.files else None
    index = index_of(listing)
    named = index.files if index else listing.safetensors
    sized = not named or (index is not None and not index.total_size)
    told = tell(load(folder / _CONFIG), folder, modelopt=modelopt, sized=sized)
    missing = [file for file in named if file not in listing.files]
    if named and not missing:
        return _by_headers(told, folder)
    checkpoint = computed(told, folder)
    if missing:
        note = f"{len(missing)} of {len(named)} weight files are not there, so no header was read"
        checkpoint = replace(checkpoint, notes=(*checkpoint.notes, note))
    return _by_index(checkpoint, index) if index and index.total_size else checkpoint


def _only_gguf(listing: Listing) -> Gguf:
    models = listing.ending(".gguf")
    if len(models) == 1:
        return read_gguf(listing.path / models[0])
    what = f"{len(models)} GGUF files" if models else f"no {_CONFIG} and no GGUF file"
    raise UsageError(f"{what} in this folder", where=shown_path(listing.path), remedy=_REMEDY)


def _by_headers(told: Told, folder: Path) -> Checkpoint:
    """The config's facts with the bytes that the headers tell."""
    from_config = computed(told, folder)
    weighed = weigh(read_folder(folder).tensors, _reading(told))
    return replace(
        from_config,
        weights_from="headers",
        layers=weighed.layers,
        embedding=weighed.embedding,
        head=weighed.head,
        vision=weighed.vision,
        draft=_draft(from_config.draft, weighed),
        tensors=weighed.tensors,
        notes=(*_without_estimates(from_config.notes), *_doubts(weighed)),
    )


def _reading(told: Told) -> Reading:
    rules = told.storage.rules
    return Reading(
        len(told.anatomy.layers),
        bits=next((rule.packing.bits for rule in rules if not rule.experts_only), 4),
        pairs=any(rule.experts_only and rule.packing.bits == 4 for rule in rules),
        tied=not any(weight.linear for weight in told.anatomy.outside.head),
    )


def _draft(expected: Draft | None, weighed: Weighed) -> Draft | None:
    """The draft whose weights are there: many copies of a model come without it."""
    if not weighed.draft:
        return None
    if expected is None:
        return Draft("mtp", len(weighed.draft), weighed.draft)
    return replace(expected, blocks=weighed.draft)


def _without_estimates(notes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(note for note in notes if "read the headers" not in note and "is counted" not in note)


def _doubts(weighed: Weighed) -> tuple[str, ...]:
    notes = []
    if weighed.unknown:
        examples = shown(", ".join(weighed.examples))
        notes.append(f"{weighed.unknown} tensors with unknown names count as copied to every rank: {examples}")
    empty = sum(not block.total_bytes for block in weighed.layers)
    if empty:
        notes.append(f"{empty} of {len(weighed.layers)} layers have no weights in these files")
    return tuple(notes)


def _by_index(checkpoint: Checkpoint, index: Index) -> Checkpoint:
    """The config's spread of bytes, scaled to the total that the index tells."""
    total, expected = index.total_size or 0, checkpoint.weights_bytes
    scaled = replace(
        checkpoint,
        weights_from="index",
        layers=tuple(_times(block, total, expected=expected) for block in checkpoint.layers),
        head=_times(checkpoint.head, total, expected=expected),
        vision=_times(checkpoint.vision, total, expected=expected),
        embedding=_times(checkpoint.embedding, total, expected=expected),
        draft=_scaled(checkpoint.draft, total, expected=expected),
        tensors=len(index.weight_map),
    )
    rest = total - scaled.weights_bytes
    embedding = replace(scaled.embedding, replicated_bytes=scaled.embedding.replicated_bytes + rest)
    note = f"the index tells {total} bytes, spread over the layers as the config has them (it comes to {expected})"
    return replace(scaled, embedding=embedding, notes=(*scaled.notes, note))


def _scaled(draft: Draft | None, total: int, *, expected: int) -> Draft | None:
    return (
        replace(draft, blocks=tuple(_times(block, total, expected=expected) for block in draft.blocks))
        if draft
        else None
    )


def _times(block: Block, total: int, *, expected: int) -> Block:
    return replace(
        block,
        sharded_bytes=block.sharded_bytes * total // expected,
        replicated_bytes=block.replicated_bytes * total // expected,
        expert_bytes=block.expert_bytes * total // expected,
    )
