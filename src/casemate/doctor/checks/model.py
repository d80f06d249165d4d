"""The model's folder, and the disk under it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from casemate.doctor.checks.check import Check, Question, gib, reason, usable
from casemate.doctor.machine import Machine

_CACHES_BYTES = 20 << 30
"""Compiled kernels, graphs and logs of an engine grow to some GiB; an installed engine takes about 11."""

_REFERENCE_BYTES = 166_886_535_336
"""DeepSeek-V4-Flash-0731 with its draft, all shards: what the product is planned around."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model on disk as its headers tell it: `fault` says why an engine could not load it, empty if it could."""

    path: str
    weights_bytes: int
    files: int
    fault: str = ""


DISK = Question("model.disk", "Disk", "df -h")
FOLDER = Question("model.folder", "Model folder", "casemate checkpoint verify FOLDER")


def checks(machine: Machine, model: Model | None) -> Iterator[Check]:
    """The checks of this theme."""
    yield disk(machine, model)
    if model or machine.model_folder:
        yield folder(machine, model)


def disk(machine: Machine, model: Model | None) -> Check:
    """Room for what is still to come: an engine and its caches, and the model where it is not there yet."""
    free = machine.disk_free_bytes
    if words := reason(machine.unknown, "disk_free_bytes"):
        return DISK.unknown(f"not told: {words}", remedy="run the command below where the model is to lie")
    if free < _CACHES_BYTES:
        return DISK.warn(
            f"{gib(free)} free",
            why=f"An engine for cards and what it compiles want about {gib(_CACHES_BYTES)} beside the model.",
            remedy="free some, or put the home folder on a larger disk (CASEMATE_HOME)",
        )
    there = model is not None and not model.fault
    if usable(machine) and not there and free < _REFERENCE_BYTES:
        return DISK.warn(
            f"{gib(free)} free",
            why=f"DeepSeek-V4-Flash with its draft takes {gib(_REFERENCE_BYTES)}; smaller models have room.",
            remedy="download to a larger disk and name its folder by `--model`",
        )
    return DISK.ok(f"{gib(free)} free")


def folder(machine: Machine, model: Model | None) -> Check:
    """Whether the folder is whole: every file that the index names is there and as long as its header says."""
    if model is None:
        return FOLDER.unknown(machine.model_folder, remedy="the recording names it only; look on the machine itself")
    if model.fault:
        return FOLDER.fail(
            f"{model.path}: {model.fault}",
            why="An engine stops at it, some minutes into the start.",
            remedy="download what is missing or broken anew (`hf download` continues), then verify",
        )
    return FOLDER.ok(f"{model.path}: {model.files} files, {gib(model.weights_bytes)}")
