"""What nvidia-smi prints, read as it is: its table, its comma-separated queries, its list of cards.

Pure: texts in, values out. A cell that holds no number keeps its words (`[N/A]`, `[Insufficient Permissions]`) as the
reason why the fact is not known; it never becomes zero, and never costs the card its row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from casemate.doctor.machine import Card, Driver

_VERSION = re.compile(r"\b(?P<label>CUDA UMD|CUDA|KMD|Driver) Version\s*:\s*(?P<version>\d{1,6}(?:\.\d{1,6}){1,4})")
_VERSION_XML = re.compile(r"<(?P<label>cuda_umd|cuda|kmd|driver)_version>\s*(?P<version>\d{1,6}(?:\.\d{1,6}){1,4})")
_LISTED = re.compile(r"^\s*GPU (?P<index>\d{1,4}): (?P<name>.{0,200}?) \(UUID: (?P<uuid>[^)]{1,200})\)")
_SLICE = re.compile(r"^\s*MIG (?P<profile>\S{1,40})\s+Device\s+\d+: \(UUID: (?P<uuid>[^)]{1,200})\)")
_QUANTITY = re.compile(r"(?P<number>[+-]?\d{1,15}(?:\.\d{1,9})?)\s*(?P<unit>[A-Za-z%/]{0,8})")
_UNIT_OF_COLUMN = re.compile(r"\s*\[(?P<unit>[^\]]*)\]$")

_UNITS: Final = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9}
_ON: Final = {"Enabled": True, "Disabled": False, "Yes": True, "No": False}


def driver(text: str) -> Driver | None:
    """The versions in a table's head or in a report; None if it names neither.

    From release 610 on they are called `KMD Version` and `CUDA UMD Version`, and the old names may be followed by a
    notice that speaks of another version. Only what stands right behind the colon is one.
    """
    found: dict[str, str] = {}
    for match in (*_VERSION.finditer(text), *_VERSION_XML.finditer(text)):
        found.setdefault(match["label"].upper().replace("_", " "), match["version"])
    version, cuda = found.get("KMD") or found.get("DRIVER", ""), found.get("CUDA UMD") or found.get("CUDA", "")
    if not version and not cuda:
        return None
    return Driver(version=version, cuda=_pair(cuda) if cuda else None, cuda_from="nvidia-smi" if cuda else "")


def listing(text: str) -> tuple[Card, ...]:
    """The cards of `nvidia-smi -L`: after a card that is cut into slices, every slice as a card of its own."""
    found: list[Card] = []
    for line in text.splitlines():
        if card := _LISTED.match(line):
            found.append(Card(int(card["index"]), card["name"], card["uuid"]))
        elif found and (part := _SLICE.match(line)):
            parent = next(card for card in reversed(found) if not card.mig)
            place = found.index(parent)
            found[place] = Card(parent.index, parent.name, parent.uuid, mig_parent=True)
            found.append(Card(parent.index, parent.name, part["uuid"], mig=part["profile"]))
    return tuple(found)


def query(text: str, columns: Sequence[str] = ()) -> tuple[Card, ...]:
    """The cards of `nvidia-smi --query-gpu=COLUMNS --format=csv[,noheader][,nounits]`, in their order.

    Args:
        text: what it printed. Without `columns` the first line is the heading.
        columns: the columns that were asked for, where there is no heading. Unknown ones are passed over.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not columns and lines:
        columns, lines = [cell.strip() for cell in lines[0].split(",")], lines[1:]
    rows = [[cell.strip() for cell in line.split(",")] for line in lines]
    return tuple(_row(place, dict(zip(columns, row, strict=False))) for place, row in enumerate(rows))


def _row(place: int, cells: dict[str, str]) -> Card:
    facts: dict[str, Any] = {"index": place, "name": ""}
    unknown = []
    for column, cell in cells.items():
        unit = _UNIT_OF_COLUMN.search(column)
        name = column[: unit.start()] if unit else column
        field, read = _COLUMNS.get(name, ("", str))
        if not field:
            continue
        try:
            facts[field] = read(cell)
        except ValueError as error:
            unknown.append((field, str(error)))
    if shares_the_hosts_memory(dict(unknown).get("memory_total_bytes", ""), mig=facts.get("mig_parent", False)):
        facts["unified"] = True
    return Card(**facts, unknown=tuple(unknown))


def shares_the_hosts_memory(why: str, *, mig: bool) -> bool:
    """Whether a card that tells no memory of its own has none: `N/A` means so, a refusal does not, nor do slices."""
    return why.strip("[]") in ("N/A", "Not Supported") and not mig


def words(cell: str) -> str:
    """A cell's text.

    Raises:
        ValueError: it says why there is none.
    """
    text = cell.strip()
    bracketed = text.startswith("[") and text.endswith("]")
    if (
        bracketed
        or text in ("", "N/A", "Unknown", "Unknown Error", "ERR!")
        or text.startswith("Requested functionality")
    ):
        raise ValueError(text[:200] or "nothing was printed")
    return text[:200]


def quantity(cell: str, default: str = "") -> float:
    """A number with its unit, in bytes, hertz, watts or degrees; `default` is the unit where none is printed.

    Raises:
        ValueError: it is no number.
    """
    text = words(cell)
    match = _QUANTITY.fullmatch(text)
    if not match:
        raise ValueError(text[:80])
    return float(match["number"]) * _UNITS.get(match["unit"] or default, 1)


def whole(cell: str) -> int:
    """A number without fraction (`16`, `16x`, `34 C`). Raises as `quantity` does."""
    return int(quantity(cell))


def memory(cell: str) -> int:
    """Bytes; a bare number is MiB, as the option `nounits` leaves it. Raises as `quantity` does."""
    return int(quantity(cell, "MiB"))


def clock(cell: str) -> int:
    """Hertz; a bare number is MHz. Raises as `quantity` does."""
    return int(quantity(cell, "MHz"))


def on(cell: str) -> bool:
    """`Enabled` or `Yes` is true. Raises as `words` does, and for any other word."""
    text = words(cell)
    if text not in _ON:
        raise ValueError(text[:80])
    return _ON[text]


def device(cell: str) -> int:
    """The device half of `0x233510DE`. Raises as `words` does, and for what is no such number."""
    text = words(cell)
    if not re.fullmatch(r"(?:0x)?[0-9A-Fa-f]{8}", text):
        raise ValueError(text[:80])
    return int(text, 16) >> 16


def bus(cell: str) -> str:
    """A PCI address in small letters. Raises as `words` does."""
    return words(cell).lower()


def mode(cell: str) -> str:
    """`Exclusive_Process` in small letters. Raises as `words` does."""
    return words(cell).lower()


def _capability(cell: str) -> tuple[int, int]:
    text = words(cell)
    if not re.fullmatch(r"\d{1,3}\.\d{1,3}", text):
        raise ValueError(text[:80])
    return _pair(text)


def _pair(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


_COLUMNS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "index": ("index", whole),
    "name": ("name", words),
    "gpu_name": ("name", words),
    "uuid": ("uuid", words),
    "gpu_uuid": ("uuid", words),
    "pci.bus_id": ("bus", bus),
    "gpu_bus_id": ("bus", bus),
    "pci.device_id": ("device_id", device),
    "memory.total": ("memory_total_bytes", memory),
    "memory.used": ("memory_used_bytes", memory),
    "compute_cap": ("compute_capability", _capability),
    "clocks.max.memory": ("memory_clock_hz", clock),
    "clocks.max.mem": ("memory_clock_hz", clock),
    "clocks.sm": ("sm_clock_hz", clock),
    "clocks.current.sm": ("sm_clock_hz", clock),
    "clocks.max.sm": ("sm_clock_max_hz", clock),
    "pcie.link.gen.current": ("pcie_generation", whole),
    "pcie.link.gen.max": ("pcie_generation_max", whole),
    "pcie.link.width.current": ("pcie_width", whole),
    "pcie.link.width.max": ("pcie_width_max", whole),
    "ecc.mode.current": ("ecc_enabled", on),
    "ecc.errors.uncorrected.volatile.total": ("ecc_uncorrected", whole),
    "power.draw": ("power_w", quantity),
    "power.limit": ("power_limit_w", quantity),
    "enforced.power.limit": ("power_limit_w", quantity),
    "power.default_limit": ("power_limit_default_w", quantity),
    "temperature.gpu": ("temperature_c", whole),
    "persistence_mode": ("persistence", on),
    "compute_mode": ("compute_mode", mode),
    "mig.mode.current": ("mig_parent", on),
}
