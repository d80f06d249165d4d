"""Cards by name, for planning without them: `--gpus 2xH20-96GB` becomes a Machine. Pure; the roof reads `cards.tsv`.

A measured card is recognised by compute capability, multiprocessors, memory and PCI device, never by its name: two H20
of different memory exist, and virtual cards have names of their own.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from casemate.doctor.machine import Card, Machine, Pair, Surroundings
from casemate.errors import CasemateError, UsageError

_COLUMNS = 14
_MIB = 1 << 20
_GIGA = 1_000_000_000
_TERA = 1_000_000_000_000
_MOST_CARDS = 64
_MEMORY_TOLERANCE = 0.02
_HOST_BYTES_A_CARD = 128 << 30
_LANES = 16


@dataclass(frozen=True, slots=True)
class Chip:
    """What a kind of card can do. Rates are per second; arithmetic is dense; `nvlink_bytes_per_s` is one way, 0: none.

    `nvswitch`: boards of it join all cards through a switch. `unified`: its memory is the host's, and each is a host.
    `device_ids` are PCI devices (vendor left out).
    """

    name: str
    aliases: tuple[str, ...]
    memory_bytes: int
    compute_capability: tuple[int, int]
    multiprocessors: int
    device_ids: tuple[int, ...]
    bandwidth_bytes_per_s: float
    bf16_flops: float
    fp8_flops: float
    nvlink_bytes_per_s: float
    nvswitch: bool
    unified: bool
    pcie_generation: int
    source: str


def chips(table: str) -> tuple[Chip, ...]:
    """The chips of a `cards.tsv` (its text): comment lines, one line of column names, tab-separated rows.

    Raises:
        CasemateError: the table is damaged.
    """
    rows = [line for line in table.splitlines() if line and not line.startswith("#")][1:]
    try:
        return tuple(_chip(row.split("\t")) for row in rows)
    except (ValueError, IndexError) as error:
        raise CasemateError(
            f"the table of cards is damaged: {error}", where="cards.tsv", remedy="install Casemate anew"
        ) from error


def machine_of(text: str, known: tuple[Chip, ...]) -> Machine:
    """The host that `--gpus` describes: `2xH20-96GB`, `8xH100`, `4090`; several kinds with a comma between them.

    Args:
        text: what was typed.
        known: the chips to choose from.

    Returns:
        A Machine with empty cards that reach each other as boards of their kind do. Its memory and disk are a guess
        that restricts nothing.

    Raises:
        UsageError: no such card, or no such number of them; its remedy lists near names.
    """
    found: list[Chip] = []
    for part in text.split(","):
        found.extend(_counted(part, known))
    if not 1 <= len(found) <= _MOST_CARDS:
        raise UsageError(f"{len(found)} cards are not between 1 and {_MOST_CARDS}", remedy="write --gpus 2xH20-96GB")
    cards = tuple(_card(index, chip) for index, chip in enumerate(found))
    return Machine(
        cores=16 * len(cards),
        memory_total_bytes=_HOST_BYTES_A_CARD * len(cards),
        memory_available_bytes=_HOST_BYTES_A_CARD * len(cards),
        disk_free_bytes=1 << 44,
        system="Linux",
        architecture="x86_64",
        cards=cards,
        pairs=tuple(_pairs(found)),
        surroundings=Surroundings(nvswitch=any(chip.nvswitch for chip in found)),
    )


def chip_of(card: Card, known: tuple[Chip, ...]) -> Chip | None:
    """The kind of a measured card, None where nothing known has its capability, multiprocessors, memory and device.

    Of several that fit, the one whose device is the card's; a device that fits nothing does not exclude the one chip
    that fits in everything else (virtual cards, boards not listed).
    """
    fits = [chip for chip in known if _fits(card, chip)]
    by_device = [chip for chip in fits if card.device_id in chip.device_ids]
    if by_device:
        return by_device[0]
    return fits[0] if len(fits) == 1 and card.multiprocessors is not None else None


def _fits(card: Card, chip: Chip) -> bool:
    if card.compute_capability != chip.compute_capability:
        return False
    if card.multiprocessors not in (None, chip.multiprocessors):
        return False
    if card.memory_total_bytes is None:
        return True
    return abs(card.memory_total_bytes - chip.memory_bytes) <= chip.memory_bytes * _MEMORY_TOLERANCE


def _chip(row: list[str]) -> Chip:
    if len(row) != _COLUMNS:
        raise ValueError(f"{len(row)} columns in {row[0]!r}, {_COLUMNS} are needed")
    major, minor = row[3].split(".")
    return Chip(
        name=row[0],
        aliases=tuple(row[1].split(",")),
        memory_bytes=int(row[2]) * _MIB,
        compute_capability=(int(major), int(minor)),
        multiprocessors=int(row[4]),
        device_ids=tuple(int(device, 16) for device in row[5].split(",")),
        bandwidth_bytes_per_s=float(row[6]) * _GIGA,
        bf16_flops=float(row[7]) * _TERA,
        fp8_flops=float(row[8]) * _TERA,
        nvlink_bytes_per_s=float(row[9]) * _GIGA,
        nvswitch=row[10] == "yes",
        unified=row[11] == "yes",
        pcie_generation=int(row[12]),
        source=row[13],
    )


def _counted(part: str, known: tuple[Chip, ...]) -> Iterator[Chip]:
    """`2xH20-96GB` as two chips. A letter x or × or * stands between number and name; without one it is one card."""
    matched = re.fullmatch(r"\s*(?:(\d{1,4})\s*[x×*]\s*)?(\S(?:.*\S)?)\s*", part, re.IGNORECASE | re.ASCII)
    if matched is None:
        raise UsageError(f"{part!r} names no card", where="--gpus", remedy="write it as 2xH20-96GB")
    count = int(matched[1] or 1)
    if not 1 <= count <= _MOST_CARDS:
        raise UsageError(
            f"{count} cards are not between 1 and {_MOST_CARDS}", where="--gpus", remedy="write 2xH20-96GB"
        )
    yield from [_named(matched[2], known)] * count


def _named(name: str, known: tuple[Chip, ...]) -> Chip:
    wanted = _plain(name)
    names = {_plain(alias): chip for chip in known for alias in (chip.name, *chip.aliases)}
    if wanted in names:
        return names[wanted]
    near = difflib.get_close_matches(wanted, names, n=4, cutoff=0.4)
    listed = dict.fromkeys(names[match].name for match in near) or dict.fromkeys(chip.name for chip in known)
    shown = "".join(character if character.isprintable() else "?" for character in name[:40])
    raise UsageError(f"no card is known as {shown!r}", where="--gpus", remedy=f"known: {', '.join(listed)}")


def _plain(name: str) -> str:
    """A name without maker, spaces and case: `NVIDIA RTX PRO 6000` and `rtx-pro-6000` are one."""
    plain = re.sub(r"[\s_-]+", "", name.lower())
    return re.sub(r"^(nvidia|geforce)+", "", plain).replace("gib", "gb")


def _card(index: int, chip: Chip) -> Card:
    return Card(
        index=index,
        name=chip.name,
        memory_total_bytes=chip.memory_bytes,
        memory_used_bytes=0,
        compute_capability=chip.compute_capability,
        multiprocessors=chip.multiprocessors,
        device_id=chip.device_ids[0],
        pcie_generation=chip.pcie_generation,
        pcie_generation_max=chip.pcie_generation,
        pcie_width=_LANES,
        pcie_width_max=_LANES,
        unified=chip.unified,
        nvlink_bytes_per_s=int(chip.nvlink_bytes_per_s) or None,
    )


def _pairs(found: list[Chip]) -> Iterator[Pair]:
    for first, chip in enumerate(found):
        for second in range(first + 1, len(found)):
            linked = chip.nvlink_bytes_per_s > 0 and found[second] is chip
            yield Pair(first, second, link="NV" if linked else "PHB", peer_access=True if linked else None)
