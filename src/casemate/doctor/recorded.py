"""A Machine from what somebody recorded on it: "send us these files of your box".

A folder with the texts of the usual tools, whatever the files are called: `nvidia-smi`, `nvidia-smi -q` (or `-q -x`),
`-L`, `topo -m`, `topo -p2p r`, `nvlink -s`, `--query-gpu … --format=csv`, and those in `recorded_texts`. Every file is
read for everything, so several outputs may stand in one. Links are not followed, large files not read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from casemate.doctor import driver as drivers
from casemate.doctor import joining, nvidia_smi, nvidia_smi_report, recorded_texts, refusals, topology
from casemate.doctor.machine import Card, Driver, Machine, Package, Surroundings
from casemate.doctor.surroundings import KEPT
from casemate.errors import UsageError

_MOST_FILES: Final = 100
_LARGEST_FILE: Final = 8 << 20
_REMEDY: Final = (
    "record nvidia-smi -q -x, nvidia-smi --query-gpu=index,name,compute_cap,memory.total --format=csv, "
    "nvidia-smi topo -m, lscpu, free -g and df -h as texts in one folder"
)


@dataclass(slots=True)
class _Seen:
    """What all files together told so far; an earlier file is believed first."""

    cards: tuple[Card, ...] = ()
    queried: tuple[Card, ...] = ()
    listed: tuple[Card, ...] = ()
    driver: Driver | None = None
    refusal: refusals.Refusal | None = None
    module: str = ""
    links: dict[frozenset[int], str] = field(default_factory=dict)
    peers: dict[frozenset[int], str] = field(default_factory=dict)
    nvlinks: dict[int, tuple[int, int]] = field(default_factory=dict)
    host: dict[str, Any] = field(default_factory=dict)
    around: dict[str, Any] = field(default_factory=dict)
    packages: dict[str, Package] = field(default_factory=dict)
    every_card: dict[str, Any] = field(default_factory=dict)
    broken: UsageError | None = None
    notes: list[tuple[str, str]] = field(default_factory=list)


def recorded(folder: Path) -> Machine:
    """The machine that the texts in a folder describe.

    Facts that no text holds are None, and those that must have a value (cores 1, memory 0, disk 0) stand in `unknown`.

    Raises:
        UsageError: there is no such folder, or no text in it tells of a machine, or the only report is broken.
    """
    seen = _Seen()
    for path in _files(folder, seen):
        _read(path, seen)
    if seen.broken and not seen.cards:
        raise seen.broken
    machine = _machine(seen)
    if not (machine.cards or machine.driver or seen.host):
        raise UsageError("no text in this folder describes a machine", where=str(folder), remedy=_REMEDY)
    return machine


def _files(folder: Path, seen: _Seen) -> list[Path]:
    try:
        paths = sorted(path for path in folder.iterdir() if path.is_file() and not path.is_symlink())
    except OSError as error:
        raise UsageError("this folder cannot be read", where=str(folder), remedy=_REMEDY) from error
    small = [path for path in paths if path.stat().st_size <= _LARGEST_FILE][:_MOST_FILES]
    seen.notes += [(path.name[:80], "left out: too large, or one file too many") for path in paths if path not in small]
    return sorted(small, key=lambda path: path.suffix != ".xml")  # believed before a report as text


def _read(path: Path, seen: _Seen) -> None:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        seen.notes.append((path.name[:80], error.strerror or "it cannot be read"))
        return
    if path.suffix == ".json":
        seen.every_card = _benchmark(text) | seen.every_card
        return
    if "<nvidia_smi_log" in text or "NVSMI LOG" in text:
        _report(text, seen, name=path.name)
    seen.refusal = seen.refusal or refusals.refused(text)
    seen.driver = seen.driver or nvidia_smi.driver(text)
    seen.module = seen.module or recorded_texts.kernel_module(text)
    seen.queried = seen.queried or recorded_texts.queried(text)
    seen.listed = seen.listed or nvidia_smi.listing(text)
    seen.links = seen.links or dict(topology.links(text))
    seen.peers = seen.peers or dict(topology.peers(text))
    seen.nvlinks = seen.nvlinks or topology.nvlinks(text)
    seen.host = recorded_texts.host(text) | seen.host
    seen.around = recorded_texts.around(text, KEPT) | seen.around
    for package in recorded_texts.installed(text):
        known = seen.packages.get(package.name)
        if known is None or (known.cuda is None and package.cuda):
            seen.packages[package.name] = package


def _report(text: str, seen: _Seen, *, name: str) -> None:
    """A report that is cut off is no loss where another one is whole."""
    if seen.cards:
        return
    try:
        seen.cards = nvidia_smi_report.cards(text, where=name)
    except UsageError as error:
        seen.broken = seen.broken or error
        seen.notes.append((name[:80], f"left out: {error.what}"))


def _benchmark(text: str) -> dict[str, Any]:
    try:
        return recorded_texts.benchmarked(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _machine(seen: _Seen) -> Machine:
    cards = joining.joined(joining.joined(seen.cards, seen.queried), seen.listed)
    cards = joining.with_links(joining.with_slices(cards, seen.listed), seen.nvlinks)
    cards = tuple(_measured(card, seen) for card in cards)
    needed = {"cores": 1, "memory_total_bytes": 0, "memory_available_bytes": 0, "disk_free_bytes": 0}
    unknown = [(name, "no text in the recording tells it") for name in needed if name not in seen.host]
    driver, words = _driver(seen)
    if words:
        unknown.append(("nvidia-smi", words))
    if not cards:
        unknown.append(("cards", words or "no text of nvidia-smi in the recording lists any"))
    if not driver:
        unknown.append(("driver", "no text in the recording names its version"))
    facts: dict[str, Any] = {"system": "Linux", "architecture": ""} | needed | seen.host
    numbers = [card.index for card in cards if not card.mig]
    return Machine(
        **facts,
        cards=cards,
        pairs=topology.pairs(numbers, links=seen.links, peers=seen.peers),
        driver=drivers.of_kernel(driver, seen.module) if driver else None,
        packages=tuple(seen.packages[name] for name in sorted(seen.packages)),
        surroundings=Surroundings(**seen.around),
        unknown=tuple(unknown + seen.notes),
    )


def _driver(seen: _Seen) -> tuple[Driver | None, str]:
    """The driver, and the words with which nvidia-smi refused; a driver whose report is there did answer."""
    if seen.refusal is None:
        return seen.driver, ""
    return (seen.driver if seen.driver and seen.cards else seen.refusal.driver), seen.refusal.words


def _measured(card: Card, seen: _Seen) -> Card:
    """With what a measurement told, if it can only speak of this card: all are of one kind and none is cut up."""
    whole = [card for card in (*seen.cards, *seen.queried) if not card.mig]
    if card.mig or card.mig_parent or len({(card.name, card.memory_total_bytes) for card in seen.cards or whole}) > 1:
        return card
    return joining.filled(card, replace(Card(card.index, card.name), **seen.every_card))
