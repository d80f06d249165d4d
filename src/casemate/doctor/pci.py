"""What lies on the PCI bus: accelerators, switches between them, and what stands in the way of one reaching another.

From `/sys/bus/pci` and `/sys/class/iommu`. Classes and the ACS capability are those of the PCI Code and ID Assignment
and the PCI Express Base specifications.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_NVIDIA: Final = 0x10DE
_DISPLAY: Final = 0x03
"""Base class of what computes: `0300` with a screen, `0302` without."""
_OTHER_BRIDGE: Final = 0x0680
"""Class of NVSwitch."""
_BRIDGE: Final = 0x0604
_EXTENDED: Final = 0x100
_ACS: Final = 0x000D
_REDIRECTS: Final = 0x04 | 0x08
"""Requests and completions between devices below are sent up to the root."""
_MOST_CAPABILITIES: Final = 64


@dataclass(frozen=True, slots=True)
class Bus:
    """What was seen: whether there is a bus to look at, accelerators as in `Surroundings.pci_cards`, and the rest."""

    seen: bool = False
    cards: tuple[tuple[str, int], ...] = ()
    switches: int = 0
    iommu: bool | None = None
    acs_redirect: bool | None = None


def look(root: Path = Path("/")) -> Bus:
    """Look at the bus below a root. ACS needs root's rights; without it is None."""
    try:
        devices = sorted((root / "sys/bus/pci/devices").iterdir())
    except OSError:
        return Bus(iommu=_iommu(root))
    cards = []
    switches = 0
    for device in devices:
        if _number(device / "vendor") != _NVIDIA:
            continue
        kind = (_number(device / "class") or 0) >> 8
        if kind >> 8 == _DISPLAY:
            cards.append((device.name, _number(device / "device") or 0))
        switches += kind == _OTHER_BRIDGE
    redirects = [_redirects(bridge) for name, _ in cards for bridge in _above(root / "sys/bus/pci/devices" / name)]
    known = [one for one in redirects if one is not None]
    return Bus(
        seen=True,
        cards=tuple(cards),
        switches=switches,
        iommu=_iommu(root),
        acs_redirect=any(known) if known else None,
    )


def numa_node(address: str, root: Path = Path("/")) -> int | None:
    """The processors' node beside a card; None where the host has one node, or does not tell.

    Args:
        address: as the driver writes it, its domain with four digits or eight.
        root: where `sys` is.
    """
    domain, _, rest = address.lower().partition(":")
    node = _number(root / "sys/bus/pci/devices" / f"{domain[-4:]}:{rest}" / "numa_node")
    return node if node is not None and node >= 0 else None


def _above(device: Path) -> Iterator[Path]:
    """The bridges that a device hangs from."""
    try:
        place = device.resolve()
    except OSError:
        return
    for folder in place.parents:
        if (_number(folder / "class") or 0) >> 8 == _BRIDGE:
            yield folder


def _redirects(bridge: Path) -> bool | None:
    """Whether a bridge redirects; None if its capabilities cannot be read."""
    try:
        space = (bridge / "config").read_bytes()
    except OSError:
        return None
    if len(space) <= _EXTENDED:
        return None
    place = _EXTENDED
    for _ in range(_MOST_CAPABILITIES):
        if place < _EXTENDED or place + 8 > len(space):
            return False
        (head,) = struct.unpack_from("<I", space, place)
        if head & 0xFFFF == _ACS:
            (control,) = struct.unpack_from("<H", space, place + 6)
            return bool(control & _REDIRECTS)
        place = head >> 20
    return False


def _iommu(root: Path) -> bool | None:
    try:
        return any((root / "sys/class/iommu").iterdir())
    except OSError:
        return None


def _number(path: Path) -> int | None:
    """A number such as `0x10de` or `-1` in a file of its own."""
    try:
        return int(path.read_text(encoding="ascii", errors="replace").strip(), 0)
    except (OSError, ValueError):
        return None
